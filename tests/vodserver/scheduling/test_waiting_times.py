"""What the policies are for: how long requests take, in the queue model of the bench."""

import importlib.util
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "benchmarks" / "bench_scheduling.py"


@pytest.fixture(scope="module")
def times():
    """How long requests take under a policy on an array, by their names in the bench."""
    spec = importlib.util.spec_from_file_location("bench_scheduling", BENCH)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    policies = {policy.label: policy for policy in bench.POLICIES}

    def run(policy: str, array: str, load: float = 0.9):
        return bench.simulate(
            policies[policy], bench.ARRAYS[array], load, count=4000, deviation=0.3, seed=7
        )

    return run


@pytest.fixture
def tail(times):
    """The 99th percentile, in reads."""

    def run(policy: str, array: str, load: float = 0.9) -> float:
        return times(policy, array, load).p99

    return run


@pytest.mark.slow
def test_choosing_late_is_no_worse_among_equal_disks(tail):
    assert tail("lazy", "equal") <= tail("shortest-queue", "equal")


@pytest.mark.slow
def test_planning_for_all_who_wait_is_better_still(tail):
    assert tail("matched", "equal") < 0.93 * tail("shortest-queue", "equal")
    assert tail("matched", "one slow") < 0.75 * tail("shortest-queue", "one slow")


@pytest.mark.slow
def test_who_knows_what_will_come_deals_turns_out_better_but_not_as_one_queue_would(times):
    planned = times("matched", "equal")

    assert planned.p99_in_order < planned.p99_foreseen < planned.p99


@pytest.mark.slow
def test_two_replicas_are_not_as_good_as_one_queue_for_all_disks(tail):
    assert tail("one queue", "equal") < 0.95 * tail("matched", "equal")


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "most"), [("expected-delay", 0.8), ("lazy", 0.8)])
def test_a_disk_of_half_speed_does_not_hold_up_those_who_learn(tail, policy, most):
    assert tail(policy, "one slow") < most * tail("shortest-queue", "one slow")


@pytest.mark.slow
def test_leaving_requests_to_faster_disks_cuts_the_tail(tail):
    plain = tail("lazy, plain", "one very slow")

    assert tail("lazy", "one very slow") < 0.8 * plain
    assert plain < 0.5 * tail("shortest-queue", "one very slow")


@pytest.mark.slow
def test_leaving_requests_to_faster_disks_helps_an_idle_array_too(tail):
    """At a third of the load nobody queues: what counts is not to ask the slow disk at all."""
    quiet = tail("lazy", "one very slow", 0.3)

    assert quiet < 0.6 * tail("lazy, plain", "one very slow", 0.3)
