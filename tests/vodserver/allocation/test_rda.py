"""Each extent on two different disks at random."""

import numpy as np

from tests.conformance.check_allocation import check_allocation
from vodserver.allocation import Rda


def test_conforms():
    check_allocation(Rda())


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
