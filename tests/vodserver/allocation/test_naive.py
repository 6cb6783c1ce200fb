"""The whole film on one disk."""

import numpy as np
import pytest

from tests.conformance.check_allocation import check_allocation
from vodserver.allocation import Naive, replacement


def test_conforms():
    check_allocation(Naive())


@pytest.mark.parametrize(
    ("used", "disk"), [([0], 0), ([5, 3, 4], 1), ([5, 3, 3], 1), ([0, 0, 0], 0), ([9, 9, 1], 2)]
)
def test_the_film_goes_to_the_emptiest_disk(used, disk):
    placed = Naive().place(4, np.array(used), np.random.default_rng(1))

    assert placed.tolist() == [[disk]] * 4


def test_the_emptiest_is_the_one_of_which_least_is_in_use():
    """30 of 100 bytes are less than 20 of 50."""
    used, capacity = np.array([20, 30]), np.array([50, 100])
    rng = np.random.default_rng(1)

    assert Naive().place(1, used, rng, capacity_bytes=capacity).tolist() == [[1]]
    assert replacement(Naive(), [], used, capacity, rng) == 1
    assert replacement(Naive(), [1], used, capacity, rng) == 0
