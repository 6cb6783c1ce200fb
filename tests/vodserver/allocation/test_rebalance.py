"""Which replicas to move so that the disks are equally full again."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.allocation import Rda, rebalance_moves
from vodserver.errors import AllocationError

EXTENT = 4_000_000


def holdings(placed, sizes):
    """Replica arrays of a placement of shape (extents, copies)."""
    copies = placed.shape[1]
    extents = np.repeat(np.arange(len(placed)), copies)
    return extents, placed.reshape(-1), np.repeat(np.asarray(sizes), copies)


def plan(placed, sizes, capacity, *, tolerance=0.01, seed=1, **options):
    return rebalance_moves(
        *holdings(placed, sizes),
        np.asarray(capacity),
        tolerance=tolerance,
        rng=np.random.default_rng(seed),
        **options,
    )


def used_after(placed, sizes, capacity, moves):
    """What each disk holds before and after each move; fails where a move cannot be made."""
    holders = [set(row) for row in placed.tolist()]
    used = np.zeros(len(capacity))
    for row, size in zip(placed.tolist(), sizes, strict=True):
        used[row] += size
    states = [used.copy()]
    for move in moves:
        assert move.size == sizes[move.extent]
        assert move.source in holders[move.extent], "moved from where it is not"
        assert move.target not in holders[move.extent], "two replicas on one disk"
        holders[move.extent].remove(move.source)
        holders[move.extent].add(move.target)
        used[move.source] -= move.size
        used[move.target] += move.size
        states.append(used.copy())
    return states


def least_bytes(used, capacity, tolerance):
    """What has to leave the fullest disks, or to reach the emptiest, whichever is more."""
    mean = used.sum() / capacity.sum()
    above = np.clip(used - (mean + tolerance) * capacity, 0, None).sum()
    below = np.clip((mean - tolerance) * capacity - used, 0, None).sum()
    return max(above, below)


@pytest.mark.parametrize("disks", [3, 4, 8])
def test_an_added_disk_gets_its_share(disks):
    capacity = np.full(disks + 1, 10**10)
    placed = Rda().place(2000, np.zeros(disks, dtype=np.int64), np.random.default_rng(5))
    sizes = [EXTENT] * 2000

    moves = plan(placed, sizes, capacity)

    states = used_after(placed, sizes, capacity, moves)
    parts = states[-1] / capacity
    assert np.abs(parts - parts.mean()).max() <= 0.01 + 1e-9
    assert {move.target for move in moves} == {disks}
    moved = sum(move.size for move in moves)
    least = least_bytes(states[0], capacity, 0.01)
    assert least <= moved <= least + (disks + 1) * EXTENT


@st.composite
def stores(draw):
    disks = draw(st.integers(2, 6))
    capacity = np.array(draw(st.lists(st.integers(50, 400), min_size=disks, max_size=disks)))
    count = draw(st.integers(0, 60))
    sizes = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    rng = np.random.default_rng(draw(st.integers(0, 10)))
    order = rng.permuted(np.tile(np.arange(disks), (count, 1)), axis=1)
    # Most of it on the first disks, as after one was added.
    return np.sort(order[:, : min(3, disks)], axis=1)[:, :2].reshape(-1, 2), sizes, capacity


@given(stores(), st.sampled_from([0.0, 0.02, 0.1]))
def test_every_plan_can_be_carried_out_and_moves_nothing_for_nothing(store, tolerance):
    placed, sizes, capacity = store
    moves = plan(placed, sizes, capacity, tolerance=tolerance)

    states = used_after(placed, sizes, capacity, moves)
    mean = states[0].sum() / capacity.sum()
    low, high = (mean - tolerance) * capacity, (mean + tolerance) * capacity
    for before, after in pairwise(states):
        was_in = (low <= before) & (before <= high)
        assert ((low - 1e-6 <= after) & (after <= high + 1e-6))[was_in].all()
    moved = sum(move.size for move in moves)
    assert moved <= least_bytes(states[0], capacity, tolerance) + len(capacity) * 8
    assert len({(move.extent, move.source) for move in moves}) == len(moves)
    assert {move.source for move in moves}.isdisjoint({move.target for move in moves})


def test_equal_disks_stay_as_they_are():
    placed = Rda().place(4000, np.zeros(4, dtype=np.int64), np.random.default_rng(5))

    assert plan(placed, [EXTENT] * 4000, [10**11] * 4) == []


def test_a_larger_disk_gets_more():
    capacity = np.array([100, 100, 300]) * EXTENT
    placed = np.tile([0, 1], (80, 1))
    sizes = [EXTENT] * 80

    moves = plan(placed, sizes, capacity, tolerance=0.02)

    # 160 replicas for 500: each disk should be 32 % full, the large one with 96 of them; but of
    # each of the 80 extents it can have only one.
    after = used_after(placed, sizes, capacity, moves)[-1] / EXTENT
    assert after.tolist() == pytest.approx([40, 40, 80], abs=2)


def test_disks_of_no_capacity_neither_give_nor_get():
    placed = np.tile([0, 3], (40, 1))
    moves = plan(placed, [10] * 40, np.array([1000, 1000, 0, 0]))

    assert {(move.source, move.target) for move in moves} == {(0, 1)}
    assert sum(move.size for move in moves) == pytest.approx(200, abs=20)


def test_a_disk_that_cannot_take_more_still_gives():
    """Disk 0 is the fullest and disk 2 the emptiest, and neither can be written to."""
    placed = np.tile([0, 1], (60, 1))
    placed[40:, 1] = 3
    can = np.array([False, True, False, True])

    moves = plan(placed, [10] * 60, np.full(4, 1000), may_get=can)

    assert {move.source for move in moves} >= {0}
    assert {move.target for move in moves} == {3}


def test_what_is_moved_is_chance_and_the_same_chance_moves_the_same():
    """From a disk with 1000 extents of ten films, each film gives about its tenth."""
    placed = np.tile([0, 1], (1000, 1))
    sizes = [EXTENT] * 1000
    capacity = np.array([10**10] * 3)

    moves = plan(placed, sizes, capacity, seed=3)

    assert moves == plan(placed, sizes, capacity, seed=3)
    assert moves != plan(placed, sizes, capacity, seed=4)
    films = np.bincount([move.extent // 100 for move in moves], minlength=10)
    assert len(moves) == pytest.approx(667, abs=40)
    assert films.min() >= 45
    assert films.max() <= 90


def test_no_disks_and_no_replicas_need_no_moves():
    empty = np.zeros((0, 2), dtype=np.int64)
    assert plan(empty, [], [100, 100]) == []
    assert plan(empty, [], [0, 0]) == []


@pytest.mark.parametrize(
    ("disks", "sizes", "message"),
    [([0], [1, 1], "each replica"), ([0, 9], [1, 1], "a capacity"), ([0, -1], [1, 1], "capacity")],
)
def test_arrays_that_do_not_fit_are_refused(disks, sizes, message):
    with pytest.raises(AllocationError, match=message):
        rebalance_moves(
            np.arange(2),
            np.array(disks),
            np.array(sizes),
            np.array([10, 10]),
            tolerance=0.1,
            rng=np.random.default_rng(1),
        )


@pytest.mark.slow
def test_a_store_of_many_extents_is_planned_at_once():
    """A hundred thousand replicas on sixteen disks, one of them new: no search in a search."""
    disks = 16
    placed = Rda().place(50_000, np.zeros(disks - 1, dtype=np.int64), np.random.default_rng(5))
    moves = plan(placed, [EXTENT] * 50_000, np.full(disks, 10**12), tolerance=0.0001)

    assert len(moves) == pytest.approx(100_000 / disks, rel=0.02)
