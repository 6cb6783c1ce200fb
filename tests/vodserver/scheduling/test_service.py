"""What a disk's reads say of its speed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.scheduling import ServiceModel

ACCESS, RATE = 0.008, 120e6


def observe(model, sizes, *, access=ACCESS, rate=RATE, jitter=0.0, rng=None):
    for size in sizes:
        noise = 1.0 if rng is None else 1 + rng.uniform(-jitter, jitter)
        model.learn(size, (access + size / rate) * noise)


def test_both_figures_are_learned_from_reads_of_different_sizes():
    rng = np.random.default_rng(1)
    model = ServiceModel()
    observe(model, rng.integers(65536, 4 << 20, 200).tolist(), jitter=0.1, rng=rng)

    assert model.access_seconds == pytest.approx(ACCESS, rel=0.25)
    assert model.rate == pytest.approx(RATE, rel=0.15)


def test_reads_of_one_size_teach_what_such_a_read_costs():
    model = ServiceModel()
    observe(model, [1 << 20] * 60)

    assert model.seconds(1 << 20) == pytest.approx(ACCESS + (1 << 20) / RATE, rel=0.01)
    assert model.access_seconds > 0
    # Split as the assumed disk splits it: 17 ms of 33 ms are access there.
    assert model.access_seconds / model.seconds(1 << 20) == pytest.approx(0.515, abs=0.02)


def test_one_late_read_hardly_counts():
    rng = np.random.default_rng(2)
    model = ServiceModel()
    observe(model, [1 << 20] * 60, jitter=0.1, rng=rng)
    before = model.seconds(1 << 20)

    model.learn(1 << 20, 100 * before)

    assert model.seconds(1 << 20) < 1.05 * before


@pytest.mark.parametrize("factor", [0.1, 3.0, 50.0])
def test_a_disk_that_changes_is_known_again_after_some_reads(factor):
    rng = np.random.default_rng(3)
    model = ServiceModel()
    observe(model, [1 << 20] * 60, jitter=0.1, rng=rng)
    changed = model.seconds(1 << 20) * factor

    for _ in range(100):
        model.learn(1 << 20, changed * (1 + rng.uniform(-0.1, 0.1)))

    assert model.seconds(1 << 20) == pytest.approx(changed, rel=0.1)


def test_an_overdue_read_is_expected_to_go_on():
    model = ServiceModel()
    observe(model, [1 << 20] * 60)
    usual = model.seconds(1 << 20)

    assert model.remaining(1 << 20, 0.0) == pytest.approx(usual)
    assert model.remaining(1 << 20, 0.75 * usual) == pytest.approx(0.25 * usual)
    assert model.remaining(1 << 20, usual) == pytest.approx(model.deviation)
    assert model.remaining(1 << 20, 11 * usual) == pytest.approx(10 * usual)


@pytest.mark.parametrize("figures", [(0.0, 1e6), (0.01, 0.0), (-1.0, 1e6)])
def test_a_disk_without_cost_is_refused(figures):
    with pytest.raises(ValueError, match="takes time"):
        ServiceModel(*figures)


@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 32), st.floats(0, 1e4, allow_nan=False)),
        min_size=1,
        max_size=60,
    )
)
def test_no_observation_makes_a_figure_that_no_disk_has(observations):
    model = ServiceModel()
    for size, seconds in observations:
        model.learn(size, seconds)
        assert 0 <= model.access_seconds < np.inf
        assert 0 < model.rate < np.inf
        assert 0 <= model.deviation < np.inf
        assert model.seconds(size) >= 0
        assert model.remaining(size, 1.0) >= 0
