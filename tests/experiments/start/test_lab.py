import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.start.lab import StartFigures, difference, distribution

TIMES = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=40)


@given(TIMES)
def test_the_intervals_hold_what_was_seen(times):
    seen = distribution(times)
    assert min(times) <= seen.p50 <= seen.p95 <= max(times)
    for quantile, (low, high) in ((seen.p50, seen.p50_interval), (seen.p95, seen.p95_interval)):
        assert min(times) <= low <= high <= max(times)
        assert low <= quantile + 1e-9
    assert seen.runs == len(times)


def test_more_runs_make_surer():
    rng = np.random.default_rng(1)
    widths = []
    for runs in (10, 1000):
        low, high = distribution(rng.normal(0.4, 0.05, runs)).p50_interval
        assert low <= 0.4 <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 4


def test_the_difference_of_two_that_do_not_overlap_is_sure():
    rng = np.random.default_rng(2)
    low, high = difference(rng.normal(0.5, 0.01, 30), rng.normal(0.4, 0.01, 30))
    assert 0.08 < low < 0.1 < high < 0.12


def test_figures_are_told_in_milliseconds():
    seen = distribution([0.25, 0.25])
    told = StartFigures(
        film="front",
        peers=10,
        seconds=1800.3,
        toast=seen,
        plain=seen,
        player="open",
        extra=0.0,
        extra_interval=(-0.01, 0.01),
        marks={"index": 0.2},
    ).as_json()
    assert told["toast"]["p50"] == 250.0
    assert told["toast"]["runs"] == 2
    assert told["extra_interval"] == pytest.approx((-10.0, 10.0))
    assert told["marks"] == {"index": 200.0}
    assert (told["seconds"], told["peers"], told["film"]) == (1800.3, 10, "front")
