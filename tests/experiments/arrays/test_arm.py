"""One arm, many readers: order and time, on a clock that is an argument."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.arrays.arm import LATE_SECONDS, Arm, Order, Request
from experiments.arrays.disk import DiskModel, Fault

MODEL = DiskModel(access_seconds=0.1, rate=1000.0, jitter_share=0.0)


def arm(order=Order.FIFO, *, joins=False, model=MODEL):
    return Arm(model, np.random.default_rng(1), order=order, joins=joins)


def drain(disk, now=0.0):
    """Let it read until nothing waits: who was answered, in order, and when."""
    answered = []
    while (done := disk.begin(now)) is not None:
        now = done
        answered += [(number, pytest.approx(done)) for number in disk.finish()]
    return answered


def test_one_read_at_a_time():
    disk = arm()
    for number in range(3):
        disk.ask(Request(5000 * number, number, 1000, 0.0))
    assert disk.begin(0.0) == pytest.approx(1.1)
    assert disk.is_reading
    assert disk.begin(0.5) is None
    assert disk.finish() == [0]
    assert not disk.is_reading
    assert drain(disk, 1.1) == [(1, 2.2), (2, 3.3)]
    assert disk.reads == 3
    assert disk.busy_seconds == pytest.approx(3.3)


def test_what_goes_on_needs_no_access():
    disk = arm()
    disk.ask(Request(0, 0, 1000))
    disk.ask(Request(1000, 1, 1000))
    disk.ask(Request(0, 2, 1000))
    assert drain(disk) == [(0, 1.1), (1, 2.1), (2, 3.2)]


def test_who_waits_is_read_for_from_when_the_disk_was_free():
    """However late we were told that it was."""
    disk = arm()
    disk.ask(Request(0, 0, 1000, 0.0))
    disk.ask(Request(9000, 1, 1000, 0.5))
    disk.begin(0.0)
    disk.finish()
    assert disk.begin(1.9) == pytest.approx(2.2)


@pytest.mark.parametrize(("rest", "late"), [(LATE_SECONDS / 2, True), (2 * LATE_SECONDS, False)])
def test_a_disk_that_rested_begins_when_it_is_asked(rest, late):
    disk = arm()
    disk.ask(Request(0, 0, 1000, 0.0))
    disk.begin(0.0)
    disk.finish()
    now = 1.1 + rest
    disk.ask(Request(9000, 1, 1000, now))
    assert disk.begin(now) == pytest.approx((1.1 if late else now) + 1.1)


def test_a_stutter_takes_longer():
    disk = arm()
    disk.ask(Request(0, 0, 1000))
    assert disk.begin(0.0, [Fault(disk=0, share=1.0)]) == pytest.approx(2.1)


def test_times_vary_as_the_model_says():
    disk = arm(model=DiskModel(access_seconds=0.1, rate=1000.0))
    for number in range(200):
        disk.ask(Request(5000 * number, number, 1000))
    drain(disk)
    assert disk.busy_seconds / 200 == pytest.approx(1.1, abs=0.01)


def test_the_elevator_goes_on_and_then_back_to_the_first():
    disk = arm(Order.ELEVATOR)
    disk.ask(Request(500, 0, 100))
    disk.begin(0.0)
    for number, position in enumerate((700, 100, 600, 50, 900), start=1):
        disk.ask(Request(position, number, 10))
    disk.finish()
    assert [number for number, _ in drain(disk)] == [3, 1, 5, 4, 2]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
def test_the_elevator_turns_back_once(positions):
    """Those that wait when it sets out are read in one sweep and a second one from the front."""
    disk = arm(Order.ELEVATOR)
    disk.ask(Request(400, -1, 100))
    disk.begin(0.0)
    for number, position in enumerate(positions):
        disk.ask(Request(position, number, 0))
    disk.finish()
    order = [positions[number] for number, _ in drain(disk)]
    assert sorted(order) == sorted(positions)
    assert order == sorted(p for p in positions if p >= 500) + sorted(
        p for p in positions if p < 500
    )


@given(
    st.sampled_from(Order),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 20)), min_size=1, max_size=40),
)
def test_all_are_answered_once_and_the_arm_is_never_in_two_places(order, joins, asks):
    disk = arm(order, joins=joins)
    waiting = sorted(asks, key=lambda ask: ask[1])
    free, answered = 0.0, []
    done = None
    for number, (block, at) in enumerate(waiting):
        while done is not None and done <= at:
            answered += disk.finish()
            free, done = done, disk.begin(done)
        disk.ask(Request(block * 1000, number, 1000, at))
        if done is None:
            done = disk.begin(at)
        assert done is None or done >= free
    while done is not None:
        answered += disk.finish()
        done = disk.begin(done)
    assert sorted(answered) == list(range(len(asks)))
    assert disk.busy_seconds >= disk.reads * 1.0 - 1e-9
    assert disk.reads == len(asks) or joins


def test_reads_of_the_same_bytes_are_made_once_if_they_may_be():
    disk = arm(joins=True)
    disk.ask(Request(0, 0, 1000))
    disk.ask(Request(5000, 1, 1000))
    disk.ask(Request(0, 2, 1000))
    disk.begin(0.0)
    disk.ask(Request(0, 3, 1000, 0.5))
    assert disk.finish() == [0, 2, 3]
    assert disk.begin(1.1) == pytest.approx(2.2)
    assert disk.finish() == [1]
    assert disk.reads == 2
