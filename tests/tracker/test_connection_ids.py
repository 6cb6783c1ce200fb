import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.connection_ids import SECRET_BYTES, WINDOW_SECONDS, ConnectionIds

SECRET = bytes(range(SECRET_BYTES))
HERE, THERE = bytes([198, 51, 100, 1]), bytes([198, 51, 100, 2])


# A millisecond less: a sum of such numbers is rounded, perhaps into the window after the next.
@given(now=st.floats(0, 1e9), later=st.floats(0, WINDOW_SECONDS - 0.001))
def test_an_id_is_good_for_at_least_a_minute(now, later):
    """BEP 15: a client may use it until one minute after it has received it."""
    ids = ConnectionIds(SECRET)
    assert ids.holds(ids.give(HERE, now), HERE, now + later)


@given(now=st.floats(0, 1e9))
def test_an_id_is_worth_nothing_after_two_minutes(now):
    ids = ConnectionIds(SECRET)
    assert not ids.holds(ids.give(HERE, now), HERE, now + 2 * WINDOW_SECONDS + 0.001)


def test_an_id_is_worth_nothing_from_elsewhere_or_under_another_secret():
    ids = ConnectionIds(SECRET)
    given_here = ids.give(HERE, 5.0)
    assert not ids.holds(given_here, THERE, 5.0)
    assert not ids.holds(given_here, HERE + bytes(12), 5.0)
    assert not ConnectionIds(bytes(SECRET_BYTES)).holds(given_here, HERE, 5.0)


def test_processes_with_one_secret_accept_each_others_ids():
    assert ConnectionIds(SECRET).holds(ConnectionIds(SECRET).give(HERE, 59.0), HERE, 61.0)


def test_guessing_does_not_help():
    ids, rng = ConnectionIds(SECRET), random.Random(1)
    assert not any(ids.holds(rng.getrandbits(64), HERE, 5.0) for _ in range(2**14))
    good = ids.give(HERE, 5.0)
    assert not any(ids.holds(good ^ (1 << bit), HERE, 5.0) for bit in range(64))


def test_the_secret_has_its_length():
    with pytest.raises(ValueError, match="32 bytes"):
        ConnectionIds(b"short")
