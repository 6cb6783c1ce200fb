"""Schedules: wall-clock windows, days, the two nights in which clocks change, and bad input."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.daemon.errors import RequestError
from toast.daemon.schedule import FULL, Limits, Schedule, day_of

AMSTERDAM = ZoneInfo("Europe/Amsterdam")
NIGHTS = "22:00-07:00 full, otherwise upload 1Mbps / no downloads"
QUIET = Limits(upload_rate=125_000.0, downloads=False)


def at(text, zone=UTC, fold=0):
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


@pytest.mark.parametrize(
    ("moment", "limits"),
    [
        ("2026-06-10T21:59:59", QUIET),
        ("2026-06-10T22:00:00", FULL),
        ("2026-06-11T00:00:00", FULL),
        ("2026-06-11T06:59:59", FULL),
        ("2026-06-11T07:00:00", QUIET),
    ],
)
def test_a_window_may_run_past_midnight(moment, limits):
    assert Schedule.parse(NIGHTS).at(at(moment), UTC) == limits


def test_a_window_past_midnight_belongs_to_the_day_on_which_it_began():
    schedule = Schedule.parse("fri 22:00-02:00 no uploads")
    assert schedule.at(at("2026-06-12T23:00:00"), UTC).uploads is False  # a Friday
    assert schedule.at(at("2026-06-13T01:59:00"), UTC).uploads is False
    assert schedule.at(at("2026-06-12T01:00:00"), UTC).uploads is True


@pytest.mark.parametrize(
    ("days", "on"),
    [
        ("mon-fri", "01234"),
        ("sat+sun", "56"),
        ("sun-tue", "601"),
        ("Wed", "2"),
        ("mon+wed-thu", "023"),
    ],
)
def test_days(days, on):
    schedule = Schedule.parse(f"{days} 00:00-24:00 no uploads")
    monday = datetime(2026, 6, 8, 12, tzinfo=UTC)
    held = [
        n for n in range(7) if not schedule.at((monday + timedelta(n)).timestamp(), UTC).uploads
    ]
    assert "".join(map(str, held)) == "".join(sorted(on))


def test_the_first_rule_that_holds_decides():
    schedule = Schedule.parse("12:00-13:00 full, 10:00-14:00 upload 80kB/s / download 2Mbps")
    assert schedule.at(at("2026-06-10T12:30:00"), UTC) == FULL
    assert schedule.at(at("2026-06-10T13:30:00"), UTC) == Limits(80_000.0, 250_000.0)
    assert schedule.at(at("2026-06-10T15:00:00"), UTC) == FULL


def test_units_keep_their_case():
    """Mb/s is an eighth of MB/s."""
    bits = Schedule.parse("otherwise upload 8Mb/s").at(0.0, UTC)
    octets = Schedule.parse("OTHERWISE UPLOAD 1MB/s").at(0.0, UTC)
    assert bits == octets == Limits(upload_rate=1_000_000.0)


def test_what_lies_in_the_missing_hour_does_not_take_place():
    """In the night of 29 March 2026 clocks go from 2:00 to 3:00."""
    schedule = Schedule.parse("02:00-03:00 no uploads")
    start = at("2026-03-29T00:00:00", AMSTERDAM)
    assert all(schedule.at(start + 60 * n, AMSTERDAM).uploads for n in range(23 * 60))


def test_what_lies_in_the_doubled_hour_takes_place_twice():
    """In the night of 25 October 2026 clocks go from 3:00 to 2:00."""
    schedule = Schedule.parse("02:00-03:00 no uploads")
    start = at("2026-10-25T00:00:00", AMSTERDAM)
    held = sum(not schedule.at(start + 60 * n, AMSTERDAM).uploads for n in range(25 * 60))
    assert held == 120


def test_a_window_that_ends_in_the_missing_hour_ends_when_clocks_jump():
    schedule = Schedule.parse("00:00-02:30 no uploads")
    now = at("2026-03-29T01:00:00", AMSTERDAM)
    assert schedule.next_change(now, AMSTERDAM) == at("2026-03-29T03:00:00", AMSTERDAM)


def test_a_day_is_one_of_local_time():
    moment = at("2026-06-10T22:30:00")
    assert day_of(moment, UTC) == "2026-06-10"
    assert day_of(moment, AMSTERDAM) == "2026-06-11"


def test_an_empty_schedule_never_changes():
    assert Schedule.parse(" ").at(0.0, UTC) == FULL
    assert Schedule.parse("").next_change(0.0, UTC) is None


clocks = st.integers(0, 24 * 60 - 1).map(lambda n: f"{n // 60:02d}:{n % 60:02d}")
terms = st.sampled_from(["full", "no uploads", "no downloads", "upload 1Mbps / no downloads"])
days = st.sampled_from(["", "mon-fri ", "sat+sun ", "wed "])
rules = st.builds(lambda d, a, b, t: f"{d}{a}-{b} {t}", days, clocks, clocks, terms)
schedules = st.lists(rules, min_size=1, max_size=3).map(", ".join)
# Around both changes of clocks, and days without any.
moments = st.sampled_from(
    ["2026-03-28T12:00", "2026-10-24T18:30", "2026-06-10T09:15", "2026-12-31T23:59"]
).flatmap(lambda text: st.integers(0, 2 * 86400).map(lambda n: at(text, AMSTERDAM) + n))


@pytest.mark.slow
@settings(max_examples=50)
@given(schedules, moments)
def test_until_the_next_change_nothing_changes_and_there_it_does(text, now):
    schedule = Schedule.parse(text)
    change = schedule.next_change(now, AMSTERDAM)
    current = schedule.at(now, AMSTERDAM)
    if change is None:
        change = now + 2 * 86400
    else:
        assert change > now
        assert schedule.at(change, AMSTERDAM) != current
        assert schedule.at(change - 0.001, AMSTERDAM) == current
    steps = [now + (change - now) * n / 50 for n in range(50)]
    assert all(schedule.at(step, AMSTERDAM) == current for step in steps)


@pytest.mark.slow
@settings(max_examples=50)
@given(schedules, moments)
def test_what_holds_depends_on_the_wall_clock_alone(text, now):
    """The same wall-clock time of the same weekday, elsewhere: the same limits."""
    schedule = Schedule.parse(text)
    wall = datetime.fromtimestamp(now, AMSTERDAM).replace(tzinfo=UTC)
    assert schedule.at(wall.timestamp(), UTC) == schedule.at(now, AMSTERDAM)


@pytest.mark.parametrize(
    "text",
    [
        "22:00-07:00",
        "25:00-07:00 full",
        "24:01-07:00 full",
        "22:60-07:00 full",
        "xyz 22:00-07:00 full",
        "mon- 22:00-07:00 full",
        "22:00-07:00 upload",
        "22:00-07:00 upload 1",
        "22:00-07:00 upload 0kB/s",
        "22:00-07:00 dance",
        "22:00-07:00 full,",
        "otherwise",
        "full",
        "x" * 1001,
    ],
)
def test_what_is_no_schedule_is_refused_in_one_line(text):
    with pytest.raises(RequestError) as refused:
        Schedule.parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.text(max_size=80))
def test_any_text_is_a_schedule_or_refused(text):
    try:
        Schedule.parse(text).at(0.0, UTC)
    except RequestError:
        return
