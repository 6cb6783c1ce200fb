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


def test_the_moment_is_a_round_trip_before_the_last_byte(clock):
    """A new connection answers after two round trips of 50 ms; then 10 bytes come each 10 ms."""
    turn = Turn(1, 200, clock)
    receive(turn, clock, 0.1, 10)
    moments = []
    for _ in range(19):
        moments.append((round(clock.now - 100.0, 3), turn.is_nearly_over))
        receive(turn, clock, 0.01, 10)
    first = next(at for at, over in moments if over)
    # The last byte comes at 0.29 s.
    assert first == pytest.approx(0.24, abs=0.011)
    assert turn.is_nearly_over


def test_one_burst_says_nothing_of_the_line_s_rate(clock):
    turn = Turn(1, 200, clock)
    receive(turn, clock, 0.1, 100)
    assert not turn.is_nearly_over


def test_all_that_was_waited_for_has_come(clock):
    turn = Turn(1, 100, clock)
    receive(turn, clock, 0.1, 100)
    assert turn.is_nearly_over


def test_a_turn_whose_requests_have_all_failed_is_over(clock):
    turn = Turn(2, 100, clock)
    turn.ended()
    assert not turn.is_nearly_over
    turn.ended()
    assert turn.is_nearly_over


async def test_who_waits_is_woken(clock):
    turn = Turn(1, 100, clock)
    waiting = asyncio.create_task(turn.wait_nearly_over())
    await asyncio.sleep(0)
    assert not waiting.done()
    turn.ended()
    await asyncio.wait_for(waiting, 1)


def test_nobody_s_turn_is_over_at_once(clock):
    assert Turn(0, 0, clock).is_nearly_over
