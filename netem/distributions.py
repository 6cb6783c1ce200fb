"""How delays spread around their mean: tables that NetEm and our own forwarder share. Pure.

A table has, for the k-th of `STEPS` equal shares of chance, the deviation in standard deviations
times `SCALE`: what the kernel takes as TCA_NETEM_DELAY_DIST (<linux/pkt_sched.h>). So both draw
from the same distribution, not from two of one name. Its numbers are of 16 bits, so nothing is
beyond four standard deviations; what is left of a Pareto distribution has 0.74 of one.
"""

import math
from enum import StrEnum
from functools import cache
from statistics import NormalDist
from typing import Final

__all__ = ["SCALE", "STEPS", "Distribution", "deviation", "table"]

STEPS: Final = 4096
SCALE: Final = 8192
"""NETEM_DIST_SCALE."""
_MOST: Final = 32_767
_SHAPE: Final = 3.0
"""Of the Pareto distribution, as in iproute2's own."""


class Distribution(StrEnum):
    """The spread of delays; the names are those of tc-netem(8)."""

    UNIFORM = "uniform"
    """All deviations up to the jitter alike."""
    NORMAL = "normal"
    """Gauss."""
    PARETO = "pareto"
    """Most a little early, some very late: shape 3."""
    PARETONORMAL = "paretonormal"
    """A quarter normal, three quarters Pareto."""


@cache
def table(distribution: Distribution) -> tuple[int, ...]:
    """`STEPS` rising deviations, in standard deviations times `SCALE`.

    Raises:
        ValueError: the uniform distribution has none; NetEm reckons it by itself.
    """
    if distribution is Distribution.UNIFORM:
        raise ValueError("the uniform distribution has no table")
    shares = [(step + 0.5) / STEPS for step in range(STEPS)]
    values = [_quantile(distribution, share) for share in shares]
    # The tails are cut, and the rest moved so that the mean stays the mean.
    middle = sum(max(-4.0, min(4.0, value)) for value in values) / STEPS
    return tuple(max(-_MOST, min(_MOST, round((value - middle) * SCALE))) for value in values)


def deviation(distribution: Distribution, chance: float) -> float:
    """The deviation, in jitters, that belongs to a chance in [0, 1)."""
    if distribution is Distribution.UNIFORM:
        return 2.0 * chance - 1.0
    return table(distribution)[int(chance * STEPS)] / SCALE


def _quantile(distribution: Distribution, share: float) -> float:
    normal = NormalDist().inv_cdf(share)
    if distribution is Distribution.NORMAL:
        return normal
    mean = _SHAPE / (_SHAPE - 1.0)
    sigma = math.sqrt(_SHAPE / ((_SHAPE - 1.0) ** 2 * (_SHAPE - 2.0)))
    pareto = (math.pow(1.0 - share, -1.0 / _SHAPE) - mean) / sigma
    return pareto if distribution is Distribution.PARETO else 0.25 * normal + 0.75 * pareto
