"""Turns: who comes next asks when the last bytes of the first are a round trip away."""

import asyncio

import pytest

from toast.viewer.turns import Turn


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def receive(turn, clock, seconds, size):
    clock.now += seconds
    turn.received(size)


KB = 1000
"""So much at a time, what is waited for is too much for a flight or two."""


def test_the_moment_is_a_round_trip_before_the_last_byte(clock):
    """A new connection answers after two round trips of 50 ms; then 10 kB come each 10 ms."""
    turn = Turn(1, 200 * KB, clock)
    receive(turn, clock, 0.1, 10 * KB)
    moments = []
    for _ in range(19):
        moments.append((round(clock.now - 100.0, 3), turn.is_nearly_over))
        receive(turn, clock, 0.01, 10 * KB)
    first = next(at for at, over in moments if over)
    # The last byte comes at 0.29 s.
    assert first == pytest.approx(0.24, abs=0.011)
    assert turn.is_nearly_over


def test_one_burst_says_nothing_of_the_line_s_rate(clock):
    turn = Turn(1, 200 * KB, clock)
    receive(turn, clock, 0.1, 100 * KB)
    assert not turn.is_nearly_over


def test_all_that_was_waited_for_has_come(clock):
    turn = Turn(1, 100 * KB, clock)
    receive(turn, clock, 0.1, 100 * KB)
    assert turn.is_nearly_over


def test_a_turn_whose_requests_have_all_failed_is_over(clock):
    turn = Turn(2, 100 * KB, clock)
    turn.ended()
    assert not turn.is_nearly_over
    turn.ended()
    assert turn.is_nearly_over


async def test_who_waits_is_woken(clock):
    turn = Turn(1, 100 * KB, clock)
    waiting = asyncio.create_task(turn.wait_nearly_over())
    await asyncio.sleep(0)
    assert not waiting.done()
    turn.ended()
    await asyncio.wait_for(waiting, 1)


def test_a_little_keeps_nobody_waiting(clock):
    """A block, which needs a flight more than a new connection's first."""
    assert Turn(1, 16 * 1024, clock).is_nearly_over


def test_what_comes_in_the_next_flight_keeps_nobody_waiting(clock):
    """At the first bytes: two connections send 29,200 bytes each in their second round trip."""
    turn = Turn(2, 87_000, clock)
    assert not turn.is_nearly_over
    receive(turn, clock, 0.1, 29_200)
    assert turn.is_nearly_over
    turn = Turn(2, 88_000, clock)
    receive(turn, clock, 0.1, 29_200)
    assert not turn.is_nearly_over


def test_nobody_s_turn_is_over_at_once(clock):
    assert Turn(0, 0, clock).is_nearly_over
