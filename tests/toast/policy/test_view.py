import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.check_picker import views


def plainly(view, most):
    """The same, piece by piece."""
    pieces = [
        piece
        for piece in range(view.missing.size)
        if view.missing[piece]
        and not view.closed[piece]
        and view.slack[piece] <= most
        and view.slack[piece] < math.inf
    ]
    return [
        (
            piece,
            view.slack[piece],
            bool(view.availability[piece] <= 0 and not view.in_flight[piece]),
        )
        for piece in sorted(pieces, key=lambda piece: view.slack[piece])
    ]


@given(views(), st.sampled_from([0.0, 3.0, 20.0, 50.0, math.inf]))
def test_what_is_open_comes_by_slack_with_whether_anyone_can_bring_it(view, most):
    assert list(view.open_by_slack(most)) == plainly(view, most)


@given(views(), st.sampled_from([0.0, 30.0, math.inf]))
def test_near_holds_all_that_is_missing_and_due_soon(view, least):
    near = view.near(least)
    soon = view.missing & (view.slack <= least) & np.isfinite(view.slack)

    assert set(np.flatnonzero(soon).tolist()) <= set(near.pieces)
    assert near.slack == sorted(near.slack) == view.slack[near.pieces].tolist()
    assert near.in_flight == view.in_flight[near.pieces].tolist()
    assert near.closed == view.closed[near.pieces].tolist()
    assert near.offered == (view.availability[near.pieces] > 0).tolist()
