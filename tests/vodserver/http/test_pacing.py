"""The timetable of a stream, in virtual time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.timemap import TimeMap
from vodserver.errors import ServeUsageError
from vodserver.http.pacing import LEADS, ConstantRate, FixedLead, GrowingLead, MapCurve, Pace

RATE = 750_000.0  # 6 Mb/s
QUANTUM = 0.04


def run(pace, *, until, link=math.inf, length=10**12, start=100.0):
    """Send whenever it is allowed over a link of so many bytes/second: [(time, bytes)]."""
    now, log, sent = start, [], 0
    while now < start + until and sent < length:
        count = min(pace.allowed(now), length - sent, 1 << 20)
        if count:
            now += count / link
            pace.sent(count, now)
            sent += count
            log.append((now - start, count))
        else:
            later = pace.when(1, now)
            assert later > now, "what may not go now may go later"
            now = later
    return log


def bytes_between(log, begin, end):
    return sum(count for time, count in log if begin <= time < end)


def test_one_slot_at_once_and_then_a_slot_per_slot_s_time():
    log = run(Pace(RATE), until=60)

    assert bytes_between(log, 0, 1e-6) == 5 * RATE
    for slot in range(1, 11):
        total = bytes_between(log, 0, 5 * slot + 1e-6)
        assert total == pytest.approx(RATE * 5 * (slot + 1), rel=0.001)


@given(
    rate=st.floats(1e4, 5e6),
    begin=st.floats(0.001, 50),
    link=st.floats(3, 1000),
)
def test_every_second_after_the_initial_buffer_is_within_a_quantum_of_the_rate(rate, begin, link):
    """Over a link so many times faster than the film."""
    pace = Pace(rate, quantum_seconds=QUANTUM)
    log = run(pace, until=60, link=link * rate)
    begin += 5 / (link - 1) + QUANTUM  # the initial buffer has gone out by then

    got = bytes_between(log, begin, begin + 1.0)

    assert abs(got - rate) <= rate * QUANTUM * 1.01 + 2
    assert pace.starvation(160).incidents == 0


def test_a_client_that_fell_behind_is_sent_faster_until_it_has_caught_up():
    pace = Pace(RATE)
    now = 0.0
    pace.sent(pace.allowed(now), now)
    pace.sent(pace.allowed(5.0), 5.0)
    # For three seconds nothing could be sent.
    behind = pace.allowed(8.0)
    assert behind == pytest.approx(3 * RATE)
    pace.sent(behind, 9.0)  # in one second, three times the rate

    assert pace.allowed(9.0) == pytest.approx(RATE)
    pace.sent(pace.allowed(9.0), 9.0)

    assert pace.allowed(9.0) == 0
    assert pace.when(1, 9.0) == pytest.approx(9.0 + QUANTUM)
    assert pace.starvation(9.0).incidents == 0


def test_the_deficit_rule_of_the_source_slot_by_slot():
    """The source keeps a deficit per connection; the timetable comes to the same end of a slot."""
    took = [1.0, 5.0, 9.0, 6.0, 2.0, 2.0, 1.0, 5.0]
    slot, now, deficit, ends = 5.0, 0.0, 0.0, []
    for sending in took:
        target = max(slot - deficit, 0.0)
        spent = max(sending, target)
        deficit = max(deficit + sending - slot, 0.0)
        now += spent
        ends.append(now)

    pace = Pace(RATE, quantum_seconds=slot)
    pace.sent(int(RATE * slot), 0.0)
    ours, now = [], 0.0
    for sending in took:
        # A slot's send begins when the one before it is done, and is done when its time is over.
        due = pace.when(int(RATE * slot), now)
        now = max(now + sending, due)
        pace.sent(int(RATE * slot), now)
        ours.append(now)

    assert ours == pytest.approx(ends)


def test_what_the_initial_buffer_took_is_no_deficit():
    """Or whoever has it first would be sent a burst, and keep the others from theirs."""
    pace = Pace(RATE)
    pace.sent(int(4 * RATE), 10.0)
    assert pace.when(int(2 * RATE), 12.0) == 12.0
    assert not pace.urgent(12.0)
    pace.sent(int(RATE), 12.0)

    assert pace.urgent(12.0)
    assert pace.allowed(12.0) == 0
    assert pace.allowed(13.0) == RATE


def test_who_has_nothing_left_is_not_urgent_any_more():
    """It may be a player that paused for an hour: what it missed must not crowd out the others."""
    pace = Pace(RATE)
    pace.sent(int(5 * RATE), 0.0)

    assert pace.urgent(4.9)
    assert not pace.urgent(3600.0)


def test_a_starving_client_is_counted_once_until_it_has_its_buffer_again():
    pace = Pace(RATE, slot_seconds=2.0)
    pace.sent(int(2 * RATE), 0.0)
    assert pace.buffered_seconds(1.5) == pytest.approx(0.5)

    assert pace.starvation(5.0).incidents == 1
    assert pace.starvation(5.0).seconds == pytest.approx(3.0)
    pace.sent(int(RATE), 5.0)  # half of a buffer does not start it again
    assert pace.starvation(5.5).incidents == 1
    pace.sent(int(RATE), 6.0)

    assert pace.starvation(7.9) == pace.starvation(6.0)
    assert pace.starvation(7.9).seconds == pytest.approx(4.0)
    assert pace.starvation(9.0).incidents == 2


def test_a_client_that_has_everything_does_not_starve():
    pace = Pace(RATE, length=1_000_000)
    pace.sent(1_000_000, 0.0)

    assert pace.allowed(100.0) == 0
    assert pace.when(5, 3.0) == 3.0
    assert pace.starvation(100.0).incidents == 0


def test_a_short_answer_plays_although_it_is_less_than_the_initial_buffer():
    pace = Pace(RATE, length=1_000_000)
    pace.sent(999_999, 0.0)
    assert not pace.urgent(0.4)
    pace.sent(1, 0.5)
    assert pace.urgent(0.6)


def test_each_answer_of_a_connection_begins_anew():
    pace = Pace(RATE)
    run(pace, until=20)
    pace.starvation(500.0)
    pace.restart()

    assert pace.allowed(600.0) == 5 * RATE
    assert pace.starvation(600.0).incidents == 0
    assert pace.sent_bytes == 0


def test_the_growing_lead_paces_from_three_times_the_rate_to_one_and_a_half():
    lead = GrowingLead(initial_seconds=0.0, full_seconds=30.0)
    log = run(Pace(RATE, lead=lead), until=120)

    assert bytes_between(log, 0, 1) / RATE == pytest.approx(3.0, rel=0.08)
    full_at = lead.reached(30.0 + 20)
    just_before = next(t / 100 for t in range(10_000) if lead.at(t / 100) >= 30.0) - 1
    assert bytes_between(log, just_before, just_before + 1) / RATE == pytest.approx(1.5, rel=0.06)
    assert bytes_between(log, 60, 61) / RATE == pytest.approx(1.0, abs=0.05)
    assert full_at < 30
    assert lead.at(1000.0) == 30.0


@given(
    lead=st.one_of(
        st.builds(FixedLead, st.floats(0, 20)),
        st.builds(GrowingLead, st.floats(0, 40), st.floats(1, 60)),
    ),
    film=st.floats(0, 5000),
)
def test_a_lead_is_reached_when_it_says(lead, film):
    elapsed = lead.reached(film)

    assert elapsed + lead.at(elapsed) >= film - 1e-6
    if elapsed > 1e-3:
        assert elapsed - 1e-3 + lead.at(elapsed - 1e-3) < film + 1e-6


@given(
    rate=st.floats(1e3, 1e7),
    quantum=st.floats(0.001, 1),
    now=st.floats(0, 1e5),
    sent=st.integers(0, 10**9),
    count=st.integers(1, 10**7),
)
def test_what_is_due_at_a_time_is_allowed_then(rate, quantum, now, sent, count):
    pace = Pace(rate, quantum_seconds=quantum)
    pace.sent(int(5 * rate) + sent, now)

    due = pace.when(count, now)

    assert due >= now
    assert pace.allowed(due + 1e-6) >= count


def film_map():
    """64 KiB in the first two seconds, 16 KiB in the next two, and an index that is due at 0."""
    due = [0.0, 0.0, 0.5, 1.0, 2.0, 4.0]
    return TimeMap(6 * 16384, 5.0, 16384, np.array(due), ((0, 16384),), ((0, 32768),), "mp4")


def test_a_film_s_own_curve_is_followed():
    curve = MapCurve(film_map())

    assert curve.bytes_at(1e-5) >= 16384
    assert curve.time_of(4 * 16384) == pytest.approx(2.0, abs=1e-4)
    assert curve.bytes_at(4.0) == pytest.approx(5 * 16384, abs=1)
    assert curve.time_of(6 * 16384) == pytest.approx(5.0, abs=1e-4)
    assert MapCurve(film_map(), speed=2.0).time_of(4 * 16384) == pytest.approx(1.0, abs=1e-4)


def test_a_curve_may_begin_in_the_midst_of_the_film():
    curve = MapCurve(film_map(), 4 * 16384)

    assert curve.time_of(0) == 0.0
    assert curve.bytes_at(2.0) == pytest.approx(16384, abs=1)


@given(start=st.integers(0, 6 * 16384 - 1), count=st.integers(0, 6 * 16384))
def test_a_curve_goes_both_ways(start, count):
    curve = MapCurve(film_map(), start)
    count = min(count, 6 * 16384 - start)

    assert curve.bytes_at(curve.time_of(count)) == pytest.approx(count, abs=1)


def test_a_stream_by_its_curve_does_not_starve_and_ends_in_time():
    pace = Pace(1.0, length=6 * 16384, curve=MapCurve(film_map()), lead=FixedLead(0.5))
    log = run(pace, until=20, length=6 * 16384)

    assert sum(count for _, count in log) == 6 * 16384
    assert 4.0 < log[-1][0] <= 5.0
    assert pace.starvation(200.0).incidents == 0


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(ServeUsageError):
        ConstantRate(rate)


def test_leads_have_names():
    assert LEADS.names() == ("deficit", "growing")
    assert LEADS.create("growing", initial_seconds=2.0) == GrowingLead(2.0)
    with pytest.raises(ServeUsageError, match="choose one of"):
        LEADS.create("none")
    with pytest.raises(ServeUsageError, match="full factor"):
        GrowingLead(full_factor=1.0)
    with pytest.raises(ServeUsageError, match="quantum"):
        Pace(RATE, quantum_seconds=0.0)
