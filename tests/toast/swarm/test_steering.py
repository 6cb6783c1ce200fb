"""From plans to priorities, as pictures: T top, o open, w waiting, . off, one letter per piece."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.policy.view import Plan, SwarmView
from toast.swarm.steering import OFF, OPEN, TOP, WAITING, Steering

LETTERS = {OFF: ".", WAITING: "w", OPEN: "o", TOP: "T"}


def pieces(*numbers):
    return np.array(numbers, dtype=np.intp)


def plan(top=(), open_=()):
    return Plan(pieces(*top), pieces(*open_))


def view(missing, slack=None):
    """`missing` as a picture: m is missing, * is here."""
    absent = np.array([letter == "m" for letter in missing])
    count = absent.size
    return SwarmView(
        slack=np.arange(count, dtype=np.float64) if slack is None else np.array(slack, float),
        missing=absent,
        availability=np.ones(count, dtype=np.int32),
        in_flight=np.zeros(count, dtype=np.bool_),
        closed=np.zeros(count, dtype=np.bool_),
        horizon=0.0,
        playhead_piece=0,
        seconds_per_piece=1.0,
    )


def picture(steering):
    return "".join(LETTERS[int(priority)] for priority in steering.priorities)


def steer(steering, top=(), open_=(), coming=(), missing="mmmmmm"):
    return steering.apply(plan(top, open_), pieces(*coming), view(missing))


@pytest.mark.parametrize(
    "case",
    [
        # ranked by index: the sequential flag says it all, and TOP would only blur the order
        ({"top": (0, 1), "open_": (2, 3)}, "oooo..", True),
        ({"top": (2, 5)}, "..o..o", True),
        ({"open_": (1, 4)}, ".o..o.", True),
        ({"top": (3,)}, "...o..", True),
        # any other order: what is wanted next comes before what may be asked for
        ({"top": (1, 0)}, "TT....", False),
        ({"top": (4, 2), "open_": (0, 1)}, "ooT.T.", False),
        ({"top": (2, 3), "open_": (0, 1)}, "ooTT..", False),
        ({"top": (0, 1), "open_": (3, 2)}, "TToo..", False),
        # what nobody has yet waits; a plan goes before it
        ({"top": (0, 1), "coming": (4, 5)}, "oo..ww", True),
        ({"top": (0, 1), "coming": (1, 2)}, "oow...", True),
        ({"coming": (5, 4, 0)}, "w...ww", False),
    ],
)
def test_priorities_that_a_plan_becomes(case):
    given_, expected, sequential = case
    steering = Steering(6)
    orders = steer(steering, **given_)
    assert picture(steering) == expected
    assert orders.sequential is sequential


def test_everything_is_off_in_the_beginning():
    assert picture(Steering(4)) == "...."


def test_only_what_changed_is_sent():
    steering = Steering(6)
    first = steer(steering, top=(0, 1), open_=(2,), coming=(5,))
    assert first.changes == [(0, OPEN), (1, OPEN), (2, OPEN), (5, WAITING)]
    second = steer(steering, top=(1, 2), open_=(3,), coming=(5,), missing="*mmmmm")
    assert second.changes == [(0, OFF), (3, OPEN)]
    third = steer(steering, top=(1, 2), open_=(3,), coming=(5,), missing="*mmmmm")
    assert third.changes == []


def test_going_out_of_order_and_back_is_told_for_every_piece():
    steering = Steering(4)
    steer(steering, top=(0, 1), missing="mmmm")
    out = steer(steering, top=(1, 0), missing="mmmm")
    assert (out.changes, out.sequential) == ([(0, TOP), (1, TOP)], False)
    back = steer(steering, top=(0, 1), missing="mmmm")
    assert (back.changes, back.sequential) == ([(0, OPEN), (1, OPEN)], True)


def test_one_missing_piece_is_always_wanted_the_one_that_is_due_last():
    steering = Steering(6)
    steer(steering, missing="**mm*m")
    assert picture(steering) == ".....w"


def test_of_the_pieces_behind_the_playhead_one_is_wanted_before_any_ahead():
    """+inf is their slack: the origin has no business with them, so waiting costs nothing."""
    steering = Steering(4)
    steering.apply(plan(), pieces(), view("mm*m", slack=[np.inf, np.inf, 0, 5]))
    assert picture(steering) == "w..."


def test_an_overdue_piece_is_wanted_if_nothing_else_is_missing():
    steering = Steering(3)
    steering.apply(plan(), pieces(), view("*m*", slack=[0, -30, 1]))
    assert picture(steering) == ".w."


def test_nothing_is_wanted_of_a_film_that_is_whole():
    steering = Steering(3)
    steer(steering, top=(0,), missing="mmm")
    orders = steer(steering, missing="***")
    assert (picture(steering), orders.changes) == ("...", [(0, OFF)])


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.permutations(range(8)),
            st.integers(0, 8),
            st.integers(0, 8),
            st.lists(st.integers(0, 7), unique=True),
            st.lists(st.booleans(), min_size=8, max_size=8),
        ),
        max_size=6,
    )
)
def test_the_changes_sent_make_the_priorities_in_force(steps):
    """Whoever replays the changes has what Steering has; something missing is always wanted."""
    steering = Steering(8)
    replayed = [OFF] * 8
    for order, cut, end, coming, missing in steps:
        top, open_ = order[: min(cut, end)], order[min(cut, end) : end]
        state = view("".join("m" if absent else "*" for absent in missing))
        orders = steering.apply(plan(top, open_), pieces(*coming), state)
        for piece, priority in orders.changes:
            assert replayed[piece] != priority
            replayed[piece] = priority
        assert replayed == steering.priorities.tolist()
        assert all(replayed[piece] in {TOP, OPEN} for piece in top)
        assert all(replayed[piece] == OPEN for piece in open_)
        assert any(replayed) or not any(missing)
        if orders.sequential:
            assert TOP not in replayed
            assert [*top, *open_] == sorted([*top, *open_])
