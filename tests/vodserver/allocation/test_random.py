"""Each extent on one disk at random."""

import numpy as np

from tests.conformance.check_allocation import check_allocation, check_follows_capacity
from vodserver.allocation import Random, replacement


def test_conforms():
    check_allocation(Random())


def test_equal_disks_get_equal_shares():
    check_follows_capacity(Random(), [7, 7, 7, 7], [0.25] * 4)


def test_a_disk_gets_as_much_as_it_is_large():
    check_follows_capacity(Random(), [10**12, 3 * 10**12, 0, 4 * 10**12], [1 / 8, 3 / 8, 0, 1 / 2])


def test_extents_are_placed_independently():
    """The disk of one extent says nothing about that of the next."""
    placed = Random().place(20_000, np.zeros(5, dtype=np.int64), np.random.default_rng(3))[:, 0]

    assert abs((placed[:-1] == placed[1:]).mean() - 1 / 5) < 0.015


def test_replicas_are_remade_as_large_as_the_disks_are():
    rng = np.random.default_rng(2)
    capacity = np.array([5, 1, 3, 1])
    used = np.zeros(4, dtype=np.int64)

    chosen = [replacement(Random(), [0], used, capacity, rng) for _ in range(2000)]

    counts = np.bincount(chosen, minlength=4) / 2000
    assert counts.tolist() == [0, *np.clip(counts[1:], [0.16, 0.55, 0.16], [0.24, 0.65, 0.24])]
