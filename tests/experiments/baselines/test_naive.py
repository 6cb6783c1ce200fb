"""What the naive client wants at a playhead, and of whom."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.baselines.naive import choose, runs_of
from experiments.errors import ScenarioError
from experiments.swarms.clients import NaiveOptions
from experiments.swarms.scenario import Client, Scenario


def wishes(slack, *, missing=None, **options):
    slack = np.asarray(slack, dtype=np.float64)
    missing = np.ones(slack.size, dtype=np.bool_) if missing is None else np.asarray(missing)
    return choose(slack, missing, NaiveOptions(**options))


def test_twelve_pieces_in_order_beyond_what_is_given_up():
    found = wishes(np.arange(30) + 0.4)

    assert found.of_peers == tuple(range(2, 14))  # 0.4 s and 1.4 s are less than 1.5 s
    assert found.of_server == ()


def test_a_piece_due_in_a_moment_is_the_servers():
    assert wishes([-0.1, 0.3, 0.31, 5.0]).of_server == (0, 1)


def test_what_is_here_or_on_its_way_is_wanted_of_nobody():
    found = wishes([0.0, 2.0, 3.0], missing=[False, False, True])

    assert found.of_server == ()
    assert found.of_peers == (2,)


def test_what_lies_behind_the_playhead_is_wanted_of_nobody():
    found = wishes([math.inf, math.inf, 9.0])

    assert found.of_peers == (2,)


def test_what_is_needed_first_is_wanted_first_wherever_it_lies():
    assert wishes([9.0, 4.0, 8.0, 2.0], wanted_pieces=2).of_peers == (3, 1)


@given(
    slack=st.lists(st.floats(-5, 60), min_size=1, max_size=30),
    data=st.data(),
    wanted=st.integers(1, 15),
)
def test_nobody_is_asked_for_what_another_is(slack, data, wanted):
    size = len(slack)
    bools = st.lists(st.booleans(), min_size=size, max_size=size)
    missing = np.array(data.draw(bools))
    found = wishes(slack, missing=missing, wanted_pieces=wanted)

    assert not set(found.of_peers) & set(found.of_server)
    assert len(found.of_peers) <= wanted
    assert all(missing[piece] for piece in (*found.of_peers, *found.of_server))
    late = {piece for piece in range(size) if missing[piece] and slack[piece] <= 0.3}
    assert set(found.of_server) == late


@pytest.mark.parametrize(
    ("missing", "runs"),
    [("....", []), ("####", [(0, 4)]), ("#..#", [(0, 1), (3, 4)]), (".##.", [(1, 3)])],
)
def test_missing_blocks_are_fetched_in_runs(missing, runs):
    assert runs_of(np.array([sign == "#" for sign in missing])) == runs


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"wanted_pieces": 0}, "wanted_pieces"),
        ({"wanted_pieces": 2.5}, "wanted_pieces"),
        ({"give_up_seconds": 0.1}, "give_up_seconds"),
        ({"hand_over_seconds": -1}, "hand_over_seconds"),
        ({"hand_over_seconds": math.nan}, "hand_over_seconds"),
        ({"missing_blocks_only": "yes"}, "missing_blocks_only"),
        ({"pieces": 8}, "pieces"),
    ],
)
def test_a_scenario_refuses_options_that_it_cannot_have(options, named):
    with pytest.raises(ScenarioError, match=named):
        Scenario(client=Client.NAIVE, client_options=options)


def test_ours_is_steered_by_the_scenario_itself():
    with pytest.raises(ScenarioError, match="wanted_pieces"):
        Scenario(client_options={"wanted_pieces": 3})
