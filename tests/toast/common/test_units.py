import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.errors import UsageError
from toast.common.units import (
    format_bytes,
    format_rate,
    format_seconds,
    parse_bytes,
    parse_rate,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096),
        ("858MB", 858_000_000),
        ("858 mb", 858_000_000),
        ("256KiB", 262_144),
        ("256k", 256_000),
        ("1.5GiB", 1_610_612_736),
        (" 2T ", 2_000_000_000_000),
        ("0", 0),
    ],
)
def test_sizes(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "MB", "-1", "1,5MB", "10 apples", "1e9", "5Mbps"])
def test_what_is_no_size(text):
    with pytest.raises(UsageError, match="is not a size: write for example"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2Mbps", 250_000),
        ("2 mbps", 250_000),
        ("1.5 Mbit/s", 187_500),
        ("800kb/s", 100_000),
        ("800bits/s", 100),
        ("250kB/s", 250_000),
        ("1MiB/s", 1_048_576),
        ("1 Gbps", 125_000_000),
    ],
)
def test_rates(text, rate):
    assert parse_rate(text) == pytest.approx(rate)


def test_one_letter_decides_between_bits_and_bytes():
    assert parse_rate("1MB/s") == 8 * parse_rate("1Mb/s")


@pytest.mark.parametrize("text", ["2", "2M", "2000000", "", "fast", "-2Mbps", "2 Mbps please"])
def test_a_rate_without_a_unit_is_refused(text):
    with pytest.raises(UsageError, match="is not a rate: write for example"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7.5", 7.5),
        ("90s", 90),
        ("250ms", 0.25),
        ("15min", 900),
        ("15 m", 900),
        ("2h", 7200),
        ("1:02:03", 3723),
        ("2:03.5", 123.5),
        ("0:00", 0),
    ],
)
def test_durations(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5", "5 parsecs", ":30"])
def test_what_is_no_duration(text):
    with pytest.raises(UsageError, match="is not a duration: write for example"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_500, "1 MB"),
        (858_000_000, "858 MB"),
        (1.5e9, "1.5 GB"),
        (2e15, "2e+03 TB"),
        (-5000, "-5 kB"),
    ],
)
def test_sizes_are_shown_with_three_figures(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0 b/s"), (250_000, "2 Mb/s"), (125, "1 kb/s"), (1.25e8, "1 Gb/s"), (15_625, "125 kb/s")],
)
def test_rates_are_shown_in_bits(rate, text):
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.9, "0:59"), (60, "1:00"), (3723.4, "1:02:03"), (-3, "0:00")],
)
def test_durations_are_shown_as_a_clock(seconds, text):
    assert format_seconds(seconds) == text


@given(st.floats(1, 1e11))
def test_what_is_shown_can_be_read_again(count):
    assert math.isclose(parse_bytes(format_bytes(count)), count, rel_tol=0.006, abs_tol=0.51)
    assert math.isclose(parse_rate(format_rate(count / 8)), count / 8, rel_tol=0.006, abs_tol=0.1)


@given(st.integers(0, 10**6))
def test_a_clock_can_be_read_again(seconds):
    assert parse_seconds(format_seconds(seconds)) == seconds


@given(st.text(max_size=20))
def test_no_text_breaks_the_readers(text):
    for parse in (parse_bytes, parse_rate, parse_seconds):
        try:
            value = parse(text)
        except UsageError:
            continue
        assert value >= 0
