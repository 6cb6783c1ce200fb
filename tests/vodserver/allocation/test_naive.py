"""The whole film on one disk."""

import numpy as np
import pytest

from tests.conformance.check_allocation import check_allocation
from vodserver.allocation import Naive


def test_conforms():
    check_allocation(Naive())


@pytest.mark.parametrize(
    ("used", "disk"), [([0], 0), ([5, 3, 4], 1), ([5, 3, 3], 1), ([0, 0, 0], 0), ([9, 9, 1], 2)]
)
def test_the_film_goes_to_the_emptiest_disk(used, disk):
    placed = Naive().place(4, np.array(used), np.random.default_rng(1))

    assert placed.tolist() == [[disk]] * 4
