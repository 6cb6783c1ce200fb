"""The whole film on both disks of a pair."""

import numpy as np
import pytest

from tests.conformance.check_allocation import check_allocation
from vodserver.allocation import Raid1, replacement
from vodserver.errors import AllocationError


def place(extents, used, capacity=None):
    rng = np.random.default_rng(1)
    return Raid1().place(extents, np.array(used), rng, capacity_bytes=capacity).tolist()


def test_conforms():
    check_allocation(Raid1())


def test_both_disks_of_a_pair_are_the_first_choice_of_half_the_extents():
    assert place(3, [0, 0]) == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("used", "capacity", "first"),
    [
        ([5, 5, 3, 3], None, 2),
        ([5, 5, 5, 5], None, 0),
        ([1, 9, 5, 5], None, 2),  # a pair is as full as its fuller disk
        ([5, 5, 4, 4], [100, 100, 50, 50], 0),
        ([0, 0, 5, 5], [100, 0, 50, 50], 2),
        ([5, 5, 9, 9, 0], None, 0),  # the fifth disk has no partner
    ],
)
def test_the_film_goes_to_the_emptiest_pair(used, capacity, first):
    capacity = None if capacity is None else np.array(capacity)
    assert place(1, used, capacity) == [[first, first + 1]]


def test_two_disks_of_different_pairs_are_none():
    with pytest.raises(AllocationError, match="no pair can take more"):
        place(1, [0, 0, 0, 0], np.array([10, 0, 0, 10]))


@pytest.mark.parametrize(
    ("held", "capacity", "disk"),
    [([2], [9, 9, 9, 9], 3), ([3], [9, 9, 9, 9], 2), ([2], [9, 9, 9, 0], 1), ([], [9, 9, 9, 9], 1)],
)
def test_a_replica_is_remade_on_the_partner_if_that_can_take_it(held, capacity, disk):
    used = np.array([2, 1, 5, 5])
    rng = np.random.default_rng(1)

    assert replacement(Raid1(), held, used, np.array(capacity), rng) == disk
