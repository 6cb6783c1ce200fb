"""Choosing disks at random as large as they are, or the emptiest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.allocation.choosing import draw, emptiest, inclusion

CAPACITIES = st.lists(st.integers(1, 10**15), min_size=3, max_size=12).map(np.array)


@given(CAPACITIES, st.integers(1, 3))
def test_inclusion_is_a_probability_and_never_less_for_a_larger_disk(capacity, copies):
    likely = inclusion(capacity, copies)

    assert likely.sum() == pytest.approx(copies)
    assert (likely >= 0).all()
    assert (likely <= 1).all()
    ordered = likely[np.argsort(capacity, kind="stable")]
    assert (np.diff(ordered) >= -1e-12).all()


@given(CAPACITIES, st.integers(1, 3), st.integers(0, 100))
def test_drawn_disks_differ_however_unequal_the_disks_are(capacity, copies, seed):
    capacity[0] = 0 if len(capacity) > copies else capacity[0]
    drawn = draw(50, copies, capacity, np.random.default_rng(seed))

    assert drawn.shape == (50, copies)
    assert all(len(set(row)) == copies for row in drawn.tolist())
    assert (capacity[drawn] > 0).all()


def test_many_rows_are_drawn_in_parts_of_bounded_size():
    drawn = draw(10_000, 1, np.array([1, 1]), np.random.default_rng(1))

    assert np.bincount(drawn.ravel()).tolist() == pytest.approx([5000, 5000], abs=200)


def test_a_full_disk_that_is_large_may_be_emptier_than_a_small_one():
    used, capacity = np.array([10, 60, 0]), np.array([10, 100, 0])

    assert emptiest(np.array([0, 1]), used, capacity) == 1
    assert emptiest(np.array([0]), used, capacity) == 0
