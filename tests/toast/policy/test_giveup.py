import math

import numpy as np
import pytest

from toast.policy import GiveUp, GiveUpSettings


def mask(picture):
    return np.array([sign == "*" for sign in picture])


def marked(signs):
    return [piece for piece, sign in enumerate(signs) if sign == "*"]


def picture(pieces):
    return "".join("*" if piece in pieces else " " for piece in range(4))


def updated(giving, slack, late, *, missing="****", horizon=2.0):
    giving.update(np.array(slack, dtype=np.float64), mask(missing), marked(late), horizon)
    return picture(giving.given_up)


@pytest.fixture
def giving():
    return GiveUp(GiveUpSettings(doubt_seconds=1.0, regain_factor=1.5, settled_seconds=1.5))


def test_what_is_late_is_given_up_and_stays_so(giving):
    assert updated(giving, [1, 2, 3, 4], "*   ") == "*   "
    assert updated(giving, [2.9, 2, 3, 4], "    ") == "*   "


def test_with_clearly_more_time_it_is_asked_of_peers_again(giving):
    updated(giving, [1, 1, 1, 1], "****")

    assert updated(giving, [3.0, 2.9, math.inf, 0], "    ") == " * *"


def test_noise_around_the_horizon_flips_nothing(giving):
    """The horizon swings by a fifth both ways: a piece is given up once, for good."""
    rng = np.random.default_rng(1)
    sides = []
    for step in range(200):
        slack = np.full(4, 5.0 - step * 0.025)
        horizon = 2.0 * rng.uniform(0.8, 1.2)
        giving.update(slack, mask("****"), (slack < horizon).nonzero()[0].tolist(), horizon)
        sides.append(0 in giving.given_up)
    assert sides == sorted(sides)
    assert sides[-1]


def test_what_has_come_is_no_longer_given_up(giving):
    updated(giving, [1, 1, 1, 1], "****")

    assert updated(giving, [1, 1, 1, 1], "    ", missing=" ** ") == " ** "


def test_while_the_origin_is_away_nothing_is_given_up(giving):
    updated(giving, [1, 1, 1, 1], "****")

    assert updated(giving, [1, 1, 1, 1], "****", horizon=-math.inf) == "    "


def test_a_doubt_must_last(giving):
    assert picture(giving.believed(0.0, marked("** *"))) == "    "
    assert giving.next_belief_in(0.0) == 1.0
    assert picture(giving.believed(0.5, marked("*  *"))) == "    "
    assert giving.next_belief_in(0.75) == 0.25
    assert picture(giving.believed(1.0, marked("** *"))) == "*  *"
    assert giving.next_belief_in(1.0) == 1.0  # the second piece was doubted anew


def test_without_doubts_no_belief_is_to_come(giving):
    giving.believed(0.0, marked("    "))

    assert giving.next_belief_in(0.0) == math.inf


def test_what_was_given_up_for_long_and_is_not_begun_is_settled(giving):
    updated(giving, [1, 1, 3, 1], "** *")

    assert picture(giving.settled(10.0, mask("*   "))) == "    "
    assert giving.next_settled_in(10.0) == 1.5
    assert picture(giving.settled(11.0, mask("*   "))) == "    "
    assert giving.next_settled_in(11.0) == 0.5
    assert picture(giving.settled(11.5, mask("*   "))) == " * *"
    assert giving.next_settled_in(11.5) == math.inf


def test_what_was_begun_meanwhile_has_to_be_given_up_for_as_long_again(giving):
    updated(giving, [1, 1, 1, 1], "*   ")
    giving.settled(10.0, mask("    "))
    giving.settled(11.0, mask("*   "))

    assert picture(giving.settled(11.5, mask("    "))) == "    "
    assert picture(giving.settled(13.0, mask("    "))) == "*   "


def test_what_is_asked_of_peers_again_is_not_settled(giving):
    updated(giving, [1, 1, 1, 1], "*   ")
    giving.settled(10.0, mask("    "))
    updated(giving, [9, 9, 9, 9], "    ")

    assert picture(giving.settled(20.0, mask("    "))) == "    "
    assert giving.next_settled_in(20.0) == math.inf
