"""Which replica the seed reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.seed.choice import DiskLoads, Move, Offered, plan_moves

RATE = 1000.0


def loads(*seconds, leaving=()):
    known = dict(enumerate(map(float, seconds)))
    return DiskLoads(known, dict.fromkeys(known, RATE), frozenset(leaving))


def offered(number, disk, *others, load=0.0):
    return Offered(("f", number), disk, others, load)


@pytest.mark.parametrize(
    ("seconds", "leaving", "ranked"),
    [
        ((0, 0, 0), (), [0, 1, 2]),
        ((3, 1, 2), (), [1, 2, 0]),
        ((3, 1, 2), (1,), [2, 0, 1]),
    ],
)
def test_the_least_loaded_disk_is_best_and_one_that_leaves_the_last(seconds, leaving, ranked):
    assert loads(*seconds, leaving=leaving).ranked([0, 1, 2]) == ranked


def test_extents_go_off_a_disk_that_leaves_though_the_other_is_loaded():
    moves = plan_moves([offered(0, 0, 1)], loads(0, 50, leaving=(0,)), 9)

    assert moves == [Move(("f", 0), 1)]


def test_nothing_goes_to_a_disk_that_leaves():
    assert plan_moves([offered(0, 0, 1, load=9e9)], loads(50, 0, leaving=(1,)), 9) == []
    assert plan_moves([offered(0, 0, 1)], loads(50, 0, leaving=(0, 1)), 9) == []


def test_an_extent_without_another_replica_stays():
    assert plan_moves([offered(0, 0, load=9.0)], loads(50, 0, leaving=(0,)), 9) == []


def test_a_loaded_disk_is_relieved_until_that_is_not_worth_it():
    """Ten extents of a tenth of a second each on one disk: three go, 0.7 s to 0.3 s is enough."""
    extents = [offered(number, 0, 1, load=RATE / 10) for number in range(10)]
    moves = plan_moves(extents, loads(1.0, 0.0), 99)

    assert len(moves) == 3
    assert {move.disk for move in moves} == {1}


def test_what_nobody_reads_is_not_moved_for_load():
    assert plan_moves([offered(0, 0, 1)], loads(50, 0), 9) == []


def test_those_that_must_go_come_first():
    extents = [offered(0, 0, 2, load=RATE), offered(1, 1, 2)]

    assert plan_moves(extents, loads(50, 0, 0, leaving=(1,)), 1) == [Move(("f", 1), 2)]


EXTENTS = st.lists(
    st.tuples(st.integers(0, 3), st.sets(st.integers(0, 3), max_size=2), st.floats(0, 1e6)),
    max_size=20,
)


@given(
    extents=EXTENTS,
    seconds=st.lists(st.floats(0, 100), min_size=4, max_size=4),
    leaving=st.sets(st.integers(0, 3)),
    most=st.integers(0, 5),
)
def test_moves_are_few_lead_to_verified_replicas_and_do_not_return(extents, seconds, leaving, most):
    known = loads(*seconds, leaving=leaving)
    before = dict(known.seconds)
    all_ = [
        offered(number, disk, *sorted(others - {disk}), load=load)
        for number, (disk, others, load) in enumerate(extents)
    ]
    moves = plan_moves(all_, known, most)

    assert known.seconds == before
    assert len(moves) <= most
    assert len({move.key for move in moves}) == len(moves)
    for move in moves:
        extent = all_[move.key[1]]
        assert move.disk in extent.others
        assert move.disk not in leaving
        there = offered(move.key[1], move.disk, extent.disk, load=extent.load)
        after = loads(*seconds, leaving=leaving)
        after.add(extent.disk, -extent.load)
        after.add(move.disk, extent.load)
        if len(moves) == 1:
            assert plan_moves([there], after, 1) == []
