from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.measured import Expected, Measured, distance, share_interval
from netem.model import Arrivals
from netem.topology import Path

EXPECTED = Expected((0.05,) * 100, 0.0, 1.0, 0.0, 0.0, 0.0, 1e6)
FINE = Measured(
    sender="a",
    receiver="b",
    asked=Path(round_trip_seconds=0.05, jitter_seconds=0.0, loss=0.0, rate=1e6),
    expected=EXPECTED,
    pings=100,
    round_trips=(0.0502,) * 100,
    stream=Arrivals(1000, 1000, 0, 0, 0),
    rate=0.99e6,
)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, None),
        ({"round_trips": (0.0506,)}, "takes 50.60 ms, not 50.00"),
        ({"round_trips": (0.0494,)}, "takes 49.40 ms"),
        ({"round_trips": ()}, "no echo was answered"),
        ({"stream": Arrivals(1000, 990, 0, 0, 0)}, "1.00% of packets lost, not 0.00%"),
        ({"stream": Arrivals(1000, 1000, 9, 0, 0)}, "of packets come twice"),
        ({"stream": Arrivals(1000, 1000, 0, 30, 0)}, "3.00% of packets are overtaken"),
        ({"stream": Arrivals(1000, 1000, 0, 0, 9)}, "of packets come corrupt"),
        ({"rate": 0.96e6}, "the rate is 960000 bytes/s, not 1000000"),
        ({"rate": 1.04e6}, "the rate is 1040000"),
        ({"rate": None}, "nothing arrived of a flood"),
    ],
)
def test_a_difference_is_named(seen, words):
    wrong = replace(FINE, **seen).wrong()
    assert wrong == [] if words is None else words in wrong[0]


def test_without_a_limit_no_rate_is_asked_for():
    free = replace(FINE, expected=replace(EXPECTED, rate=None), rate=None)
    assert free.wrong() == []


def test_bursts_are_given_more_room():
    bursty = replace(EXPECTED, loss=0.02, inflation=8.0)
    seen = replace(FINE, stream=Arrivals(1000, 960, 0, 0, 0))
    assert replace(seen, expected=bursty).wrong() == []
    assert replace(seen, expected=replace(bursty, inflation=1.0)).wrong() != []


def test_a_spread_that_is_too_narrow_is_found_out():
    spread = tuple(0.05 + n / 10_000 for n in range(100))
    asked = replace(FINE.asked, jitter_seconds=0.01)
    good = replace(FINE, asked=asked, expected=replace(EXPECTED, round_trips=spread))
    assert replace(good, round_trips=spread).wrong() == []
    narrow = tuple(0.05495 + (n - 50) / 100_000 for n in range(100))
    assert "do not spread as asked" in replace(good, round_trips=narrow).wrong()[0]
    assert FINE.spread_distance is None


def test_the_distance_of_two_samples():
    assert distance([1, 2, 3], [1, 2, 3]) == 0
    assert distance([1, 2], [3, 4]) == 1
    assert distance([1, 2, 3, 4], [3, 4, 5, 6]) == 0.5


@given(st.integers(1, 5000), st.floats(1, 20), st.data())
def test_the_interval_holds_what_was_seen(trials, inflation, data):
    hits = data.draw(st.integers(0, trials))
    low, high = share_interval(trials, hits, inflation=inflation)
    assert 0.0 <= low <= hits / trials <= high <= 1.0


def test_the_interval_of_a_known_case():
    """Wilson's 99 % interval of 20 in 1000, computed by hand: 0.01136 to 0.03496."""
    assert share_interval(1000, 20) == pytest.approx((0.01136, 0.03496), abs=2e-5)
