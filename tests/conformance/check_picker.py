"""What every picker must do, whatever it prefers. `check_picker(make)` runs all of it."""

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from toast.policy.pickers import make_plan
from toast.policy.view import Plan, SwarmView

__all__ = ["check_picker", "make_view", "views"]

_THOROUGH = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)


def make_view(
    availability: str,
    have: str = "",
    *,
    playhead: int = 0,
    in_flight: str = "",
    closed: str = "",
    horizon: float = 0.0,
    seconds_per_piece: float = 1.0,
) -> SwarmView:
    """A view from pictures, one character per piece: "2223333" copies, "* * *  " here or not."""
    count = len(availability)

    def marks(text: str) -> np.ndarray:
        return np.array([c != " " for c in text.ljust(count)], dtype=np.bool_)

    slack = (np.arange(count) - playhead) * seconds_per_piece
    slack[:playhead] = np.inf
    return SwarmView(
        slack=slack,
        missing=~marks(have),
        availability=np.array([int(c) for c in availability], dtype=np.int32),
        in_flight=marks(in_flight),
        closed=marks(closed),
        horizon=horizon,
        playhead_piece=playhead,
        seconds_per_piece=seconds_per_piece,
    )


@st.composite
def views(draw, most=40):
    count = draw(st.integers(0, most))
    flags = hnp.arrays(np.bool_, count)
    missing = draw(flags)
    return SwarmView(
        slack=draw(hnp.arrays(float, count, elements=st.floats(-50, 500) | st.just(np.inf))),
        missing=missing,
        availability=draw(hnp.arrays(np.int32, count, elements=st.integers(0, 5))),
        in_flight=draw(flags) & missing,
        closed=draw(flags),
        horizon=draw(st.floats(0, 60) | st.just(-np.inf)),
        playhead_piece=draw(st.integers(0, max(0, count - 1))),
        seconds_per_piece=draw(st.floats(0.1, 10)),
    )


def check_picker(make, *, shrink: bool = True) -> None:
    """Run the whole kit on the picker that `make()` gives.

    Args:
        make: makes the picker.
        shrink: look for the smallest view that shows a fault, which takes seconds.

    Raises:
        AssertionError: the picker breaks a rule; the message of Hypothesis shows the view.
    """
    thorough = _THOROUGH if shrink else settings(_THOROUGH, phases=(Phase.generate,))
    _check_ranking(make, thorough)
    _check_plan(make, thorough)
    _check_nobody_idles(make, thorough)
    _check_nothing_to_do(make)


def _check_ranking(make, thorough) -> None:
    @thorough
    @given(views(), st.integers(0, 2**32 - 1))
    def check(view, seed):
        picker = make()
        before = [a.copy() for a in (view.slack, view.missing, view.availability, view.in_flight)]
        ranked = picker.rank(view, np.random.default_rng(seed))

        assert ranked.dtype == np.intp
        assert view.candidates[ranked].all(), "a picker names only candidates"
        assert len(set(ranked.tolist())) == ranked.size, "a picker names no piece twice"
        may = view.missing & ~view.closed & (view.availability > 0)
        assert may[ranked].all()
        near = (view.slack < view.horizon) & ~view.in_flight
        assert not near[ranked].any(), "what is under the horizon is not begun"
        again = make().rank(view, np.random.default_rng(seed))
        assert np.array_equal(ranked, again), "the same seed gives the same ranking"
        after = (view.slack, view.missing, view.availability, view.in_flight)
        assert all(map(np.array_equal, before, after)), "the view is lent, not given"
        assert picker.drawn(view).shape == view.missing.shape
        assert bool(ranked.size) == bool(view.candidates.any()), "something is wanted if it can be"

    check()


def _check_plan(make, thorough) -> None:
    @thorough
    @given(views(), st.integers(0, 12), st.integers(0, 5), st.data())
    def check(view, top, more, data):
        picker, rng = make(), np.random.default_rng(7)
        count = view.missing.size
        before = data.draw(st.lists(st.integers(0, count - 1), unique=True)) if count else []
        previous = Plan(np.array(before, dtype=np.intp), np.empty(0, dtype=np.intp))
        plan = make_plan(picker, view, rng, top=top, open_=more, previous=previous)

        both = plan.top.tolist() + plan.open.tolist()
        assert len(set(both)) == len(both), "no piece is in a plan twice"
        assert view.candidates[both].all()
        under_way = np.flatnonzero(view.candidates & view.in_flight)
        assert set(under_way.tolist()) <= set(plan.top.tolist()), "what was begun is finished"
        slack = view.slack[plan.top[: under_way.size]]
        assert view.in_flight[plan.top[: under_way.size]].all(), "what was begun goes first"
        assert (slack[1:] >= slack[:-1]).all(), "of what was begun, the earliest due goes first"
        assert plan.top.size <= max(top, under_way.size)
        assert plan.open.size <= more
        if plan.open.size:
            assert plan.top.size >= top, "nothing is merely open while there is room on top"

        drawn = picker.drawn(view)
        alive = [p for p in before if drawn[p] and view.candidates[p] and not view.in_flight[p]]
        new = [p for p in plan.top.tolist() if drawn[p] and not view.in_flight[p]]
        ranked = picker.rank(view, np.random.default_rng(7)).tolist()
        if set(alive) <= set(ranked):
            assert new[: len(alive)] == alive[: len(new)], "a draw is kept, not repeated"

    check()


def _check_nobody_idles(make, thorough) -> None:
    @thorough
    @given(views(), st.integers(0, 6), st.integers(0, 3), st.data())
    def check(view, top, more, data):
        count = view.missing.size
        of_one = st.tuples(hnp.arrays(np.bool_, count), st.integers(1, 3))
        holdings = data.draw(st.lists(of_one, max_size=5))
        picker, rng = make(), np.random.default_rng(7)
        plain = make_plan(picker, view, np.random.default_rng(7), top=top, open_=more)
        plan = make_plan(picker, view, rng, top=top, open_=more, holdings=holdings)

        assert np.array_equal(plan.top, plain.top)
        assert np.array_equal(plan.open[: plain.open.size], plain.open), "others come after it"
        both = plan.top.tolist() + plan.open.tolist()
        assert len(set(both)) == len(both), "no piece is in a plan twice"
        assert view.candidates[both].all()
        others = plan.open[plain.open.size :]
        assert not view.in_flight[others].any()
        assert others.size <= sum(most for _, most in holdings)
        for has, _ in holdings:
            free = view.candidates & ~view.in_flight & has
            assert has[[p for p in both if free[p]]].any() == free.any(), "nobody idles"

    check()


def _check_nothing_to_do(make) -> None:
    rng = np.random.default_rng(1)
    for view in (
        make_view(""),
        make_view("000"),
        make_view("333", "***"),
        make_view("1", closed="x"),
    ):
        assert make().rank(view, rng).size == 0
        plan = make_plan(make(), view, rng, top=4, open_=4)
        assert plan.top.size == plan.open.size == 0
