"""Each extent on two different disks at random."""

import numpy as np
import pytest

from tests.conformance.check_allocation import check_allocation, check_follows_capacity
from vodserver.allocation import Rda, Rda3, replacement


@pytest.mark.parametrize("make", [Rda, Rda3])
def test_conforms(make):
    check_allocation(make())


def test_every_ordered_pair_of_disks_is_equally_likely():
    """A chi-squared test over the 12 ordered pairs of 4 disks; 31.3 is its 0.1 % point."""
    extents = 12_000
    placed = Rda().place(extents, np.zeros(4, dtype=np.int64), np.random.default_rng(7))

    counts = np.zeros((4, 4))
    np.add.at(counts, (placed[:, 0], placed[:, 1]), 1)
    off_diagonal = counts[~np.eye(4, dtype=bool)]
    expected = extents / 12
    assert counts.trace() == 0
    assert ((off_diagonal - expected) ** 2 / expected).sum() < 31.3


def test_extents_are_placed_independently():
    """The disk of one extent says nothing about that of the next."""
    placed = Rda().place(20_000, np.zeros(5, dtype=np.int64), np.random.default_rng(3))

    first = placed[:, 0]
    same_as_next = (first[:-1] == first[1:]).mean()
    assert abs(same_as_next - 1 / 5) < 0.015


def test_how_full_the_disks_are_does_not_matter():
    empty = Rda().place(50, np.zeros(3, dtype=np.int64), np.random.default_rng(1))
    full = Rda().place(50, np.array([0, 10**12, 0]), np.random.default_rng(1))

    assert (empty == full).all()


def test_a_disk_gets_as_much_as_it_is_large():
    check_follows_capacity(Rda(), [1, 2, 3, 4], [0.2, 0.4, 0.6, 0.8])
    check_follows_capacity(Rda(), [500, 0, 500, 1000, 1000], [1 / 3, 0, 1 / 3, 2 / 3, 2 / 3])


def test_a_very_large_disk_gets_one_copy_of_everything():
    """And the others share the second copies as large as they are."""
    check_follows_capacity(Rda(), [100, 10, 20], [1.0, 1 / 3, 2 / 3])
    check_follows_capacity(Rda(), [100, 90, 0], [1.0, 1.0, 0.0])


def test_three_copies_follow_capacity_too():
    check_follows_capacity(Rda3(), [1, 2, 3, 4], [1 / 3, 2 / 3, 1.0, 1.0])
    check_follows_capacity(Rda3(), [10, 10, 10, 10, 0], [0.75, 0.75, 0.75, 0.75, 0.0])


def test_every_pair_of_unequal_disks_occurs():
    """No two disks are kept apart, so that any two share the load of some extents."""
    placed = Rda().place(
        5000,
        np.zeros(5, dtype=np.int64),
        np.random.default_rng(7),
        capacity_bytes=np.array([1, 1, 2, 2, 4]),
    )
    assert len({tuple(row) for row in placed.tolist()}) == 20


def test_replicas_are_remade_on_any_other_disk():
    rng = np.random.default_rng(2)
    used = np.zeros(4, dtype=np.int64)

    chosen = [replacement(Rda(), [1], used, None, rng) for _ in range(900)]

    counts = np.bincount(chosen, minlength=4)
    assert counts[1] == 0
    assert counts[[0, 2, 3]].min() > 240
