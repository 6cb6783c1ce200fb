"""Kinds of claims: what they take for shown, for not shown, and for open."""

from dataclasses import replace

import pytest

from experiments.figures.claims import above, apart, lies_in, pairs, reaches
from experiments.figures.figure import Claim, judge, make_cell
from experiments.figures.results import CellResults, Results
from tests.experiments.figures.fake import FakeEngine


@pytest.fixture(scope="module")
def run():
    return FakeEngine().run(make_cell("quick", "hybrid", changes={"viewers": 1}).scenario)


@pytest.fixture
def results(run):
    """Results from offloads by picker: results(a=[0.1, 0.2], b=[0.3, 0.4])."""

    def make(**offloads):
        return Results(
            CellResults(
                name,
                {"picker": name},
                {
                    seed: replace(run, offload=value, bound=0.75, total_bytes=int(value * 1e12))
                    for seed, value in enumerate(values)
                },
            )
            for name, values in offloads.items()
        )

    return make


A, B, C = ({"picker": name} for name in "abc")


@pytest.mark.parametrize(
    ("a", "b", "seen"),
    [
        ([0.5, 0.6, 0.7], [0.4, 0.5, 0.6], True),
        ([0.4, 0.5, 0.6], [0.5, 0.6, 0.7], False),
        ([0.5, 0.9, 0.1], [0.4, 0.5, 0.6], None),
        ([0.5], [0.4], True),
        ([0.4], [0.4], None),
    ],
)
def test_an_order_is_seen_where_chance_does_not_explain_it(results, a, b, seen):
    assert judge(above("", pairs([A], [B])), results(a=a, b=b)).reproduced is seen


def test_some_of_many_orders_may_be_enough(results):
    found = results(a=[0.5], b=[0.4], c=[0.6])
    order = pairs([A], [B, C])
    assert judge(above("", order), found).reproduced is False
    assert judge(above("", order, least=1), found).reproduced is True
    verdict = judge(above("", order), found)
    assert verdict.number == pytest.approx(-0.1)
    assert verdict.words == "1 of 2, 0 within chance; least: a over c by -10.0 points"


def test_traffic_is_told_in_bytes(results):
    found = judge(above("", pairs([B], [A]), field="total_bytes"), results(a=[0.4], b=[0.5]))
    assert (found.reproduced, found.number) == (True, 1e11)
    assert found.words.endswith("by +100 GB")


def test_a_level_is_reached_by_the_best_or_by_every_one(results):
    found = results(a=[0.69, 0.69], b=[0.5, 0.6])
    assert judge(reaches("", [A, B], 0.7), found).reproduced is True  # but for NEAR
    assert judge(reaches("", [A, B], 0.72), found).reproduced is False
    verdict = judge(reaches("", [A, B], 0.6, every=True), found)
    assert (verdict.reproduced, verdict.words) == (False, "least: b 55.0 %")


def test_places_apart(results):
    found = results(a=[0.5], b=[0.515], c=[0.4])
    assert judge(apart("", [(A, B)], 0.02), found).reproduced is True
    verdict = judge(apart("", [(A, B), (A, C)], 0.02), found)
    assert (verdict.reproduced, verdict.words) == (False, "at most 10.00 points: a over c")


def test_a_number_in_a_range(results):
    claim = lies_in("", lambda found: found.mean(picker="a"), 0.4, 0.6)
    assert judge(claim, results(a=[0.5])).words == "50.0 %"
    assert judge(claim, results(a=[0.7])).reproduced is False


def test_what_is_missing_is_named_and_decides_nothing(results):
    verdict = judge(above("", pairs([A], [B])), results(a=[0.5]))
    assert (verdict.reproduced, verdict.number) == (None, None)
    assert verdict.words == "there is no result of b"
    assert verdict.label == "cannot tell"


def test_other_errors_are_not_hidden(results):
    def wrong(found):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judge(Claim("", wrong), results())


def test_what_the_bound_forbids_is_not_held_against_a_policy(results):
    found = results(a=[0.7])
    verdict = judge(reaches("", [A], 0.9), found)
    assert verdict.reproduced is None
    assert verdict.words == "best: a 70.0 %; no policy can pass 75.0 % here"
    assert judge(reaches("", [A], 0.75), found).reproduced is False
