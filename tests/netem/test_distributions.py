import statistics

import pytest

from netem.distributions import SCALE, STEPS, Distribution, deviation, table

WITH_TABLE = [each for each in Distribution if each is not Distribution.UNIFORM]


@pytest.mark.parametrize("distribution", WITH_TABLE)
def test_a_table_rises_and_has_mean_nought_and_nearly_one_standard_deviation(distribution):
    values = table(distribution)
    assert len(values) == STEPS
    assert list(values) == sorted(values)
    assert values[0] >= -32_768
    assert values[-1] <= 32_767
    assert statistics.fmean(values) / SCALE == pytest.approx(0.0, abs=0.01)
    assert statistics.pstdev(values) / SCALE == pytest.approx(1.0, abs=0.3)


def test_the_normal_table_has_the_known_quantiles():
    assert deviation(Distribution.NORMAL, 0.841345) == pytest.approx(1.0, abs=1e-3)
    assert deviation(Distribution.NORMAL, 0.022750) == pytest.approx(-2.0, abs=5e-3)


def test_a_pareto_delay_is_mostly_a_little_early_and_sometimes_very_late():
    assert deviation(Distribution.PARETO, 0.5) < 0
    assert deviation(Distribution.PARETO, 0.0) == pytest.approx(-0.5 / 0.75**0.5, abs=0.06)
    assert deviation(Distribution.PARETO, 0.9999) > 3.9


def test_the_uniform_one_needs_no_table():
    assert [deviation(Distribution.UNIFORM, c) for c in (0.0, 0.5, 0.75)] == [-1.0, 0.0, 0.5]
    with pytest.raises(ValueError, match="no table"):
        table(Distribution.UNIFORM)
