"""Crowding: what is turned away waits for what is answered; who answers nobody is down."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.policy.crowding import Crowding, CrowdingSettings


def test_as_long_as_nobody_is_turned_away_everything_is_asked_at_once():
    crowding = Crowding()
    for now in range(10):
        crowding.answered(float(now))
    assert crowding.width == math.inf


def test_no_more_is_asked_at_once_than_is_answered():
    crowding = Crowding()
    assert crowding.refused(0.0, answering=12) == 0.0
    assert crowding.width == 12


def test_one_more_with_each_answer_once_it_was_calm():
    crowding = Crowding()
    crowding.refused(0.0, answering=3)
    crowding.answered(0.4)
    assert crowding.width == 3
    crowding.answered(0.6)
    crowding.answered(0.7)
    assert crowding.width == 5


def test_where_nobody_is_answered_one_alone_tries_ever_less_often():
    crowding = Crowding()
    waits = []
    for _ in range(6):
        waits.append(crowding.refused(0.0, answering=0))
        crowding.waited()
    assert crowding.width == 1
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_an_answer_ends_the_waiting():
    crowding = Crowding()
    crowding.refused(0.0, answering=0)
    crowding.waited()
    crowding.answered(2.9)
    assert crowding.refused(5.0, answering=0) == pytest.approx(0.1)


def test_a_server_that_answers_nobody_for_long_counts_as_down():
    crowding = Crowding()
    assert crowding.refused(0.0, answering=0) is not None
    assert crowding.refused(2.9, answering=0) is not None
    assert crowding.refused(3.0, answering=0) is None
    crowding.reset()
    assert crowding.width == math.inf
    assert crowding.refused(4.0, answering=0) is not None


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 50)), max_size=40))
def test_while_somebody_is_answered_it_is_never_down_and_somebody_may_always_ask(story):
    crowding, now, unanswered_since = Crowding(), 0.0, None
    for pause, answering in story:
        now += pause
        wait = crowding.refused(now, answering)
        unanswered_since = (
            None if answering else now if unanswered_since is None else (unanswered_since)
        )
        assert crowding.width >= 1
        patience = CrowdingSettings().patience_seconds
        if wait is None:
            assert unanswered_since is not None
            assert now - unanswered_since >= patience
