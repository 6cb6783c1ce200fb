"""Lots: what each of those who watch together fetches, and when."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.policy.lots import Lots, LotSettings

PIECES = 2000


def slacks(together, seed=0, **fields):
    return Lots(PIECES, np.random.default_rng(seed), LotSettings(**fields)).early(together)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 100))
def test_all_lots_lie_between_the_first_moment_and_the_last(together, seed):
    early = slacks(together, seed, reach_seconds=30.0, last_seconds=2.0)

    assert early.shape == (PIECES,)
    assert early.min() >= 2.0
    assert early.max() <= 30.0


@pytest.mark.parametrize("together", [4, 15, 90, 1000])
def test_few_are_early_however_many_there_are(together):
    """Of a piece: who is in the first quarter of the time. Half of all would be 2 to 500."""
    crowd = np.array([slacks(together, seed) for seed in range(together)])
    early = (crowd > 40.0 - 39.0 / 4).sum(axis=0).mean()

    assert 0.3 < early < 3.5


def test_the_more_there_are_the_later_each_is():
    medians = [np.median(slacks(together)) for together in (1, 4, 15, 90)]

    assert medians == sorted(medians, reverse=True)


def test_the_same_piece_keeps_its_lot():
    lots = Lots(PIECES, np.random.default_rng(3))

    assert (lots.early(9) == lots.early(9)).all()
    assert (np.argsort(lots.early(9)) == np.argsort(lots.early(50))).all()
