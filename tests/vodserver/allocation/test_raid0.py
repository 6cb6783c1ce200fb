"""The extents of a film on all disks in turn."""

import numpy as np

from tests.conformance.check_allocation import check_allocation
from vodserver.allocation import Raid0


def place(extents, used, capacity=None):
    rng = np.random.default_rng(1)
    return Raid0().place(extents, np.array(used), rng, capacity_bytes=capacity).ravel().tolist()


def test_conforms():
    check_allocation(Raid0())


def test_every_film_begins_on_the_first_disk_and_goes_round():
    assert place(8, [0, 0, 0]) == [0, 1, 2, 0, 1, 2, 0, 1]
    assert place(3, [9, 5, 0]) == [0, 1, 2]


def test_a_disk_that_takes_nothing_is_left_out_of_the_stripe():
    assert place(5, [0, 0, 0], np.array([7, 0, 7])) == [0, 2, 0, 2, 0]
