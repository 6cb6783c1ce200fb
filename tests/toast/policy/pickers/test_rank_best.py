"""The first pieces of a ranking are the same, whether or not all of it is made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.policy.pickers import create_picker
from toast.policy.pickers.base import rank_best
from toast.policy.view import SwarmView

PIECES = 200


def views() -> st.SearchStrategy[SwarmView]:
    flags = st.integers(0, 2**32 - 1).map(
        lambda seed: np.random.default_rng(seed).random((4, PIECES)) < 0.6
    )
    return st.builds(
        lambda flags, horizon: SwarmView(
            slack=np.where(flags[3], np.arange(PIECES) - 10.0, np.inf),
            missing=flags[0],
            availability=flags[1].astype(np.int32),
            in_flight=flags[2] & (np.arange(PIECES) < 20),
            closed=np.zeros(PIECES, dtype=np.bool_),
            horizon=horizon,
            playhead_piece=0,
            seconds_per_piece=1.0,
        ),
        flags,
        st.floats(-5, 20),
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("in-order", {}),
        ("hybrid", {"in_order_seconds": 100.0}),
        ("beta", {}),
        ("rarest-first", {}),
    ],
)
@given(view=views(), most=st.integers(0, 40))
def test_the_best_are_the_first_of_the_whole_ranking(name, options, view, most):
    picker = create_picker(name, **options)
    whole = picker.rank(view, np.random.default_rng(1))

    best = rank_best(picker, view, np.random.default_rng(1), most)

    assert best.size >= min(most, whole.size)
    assert best[:most].tolist() == whole[:most].tolist()
