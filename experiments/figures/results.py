"""Results of a figure's cells over seeds: means, intervals and differences. Pure.

A 95 % interval is Student's t over the seeds. Two cells are compared seed by seed, since the same
seed means the same arrivals in both.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.errors import MissingResultError

__all__ = ["CellResults", "Estimate", "Results", "estimate"]

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; beyond, the normal's.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_Z95 = 1.960


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: of them.
        half_width: of its 95 % interval; 0 where there is one seed only.
        seeds: how many there are.
    """

    mean: float
    half_width: float
    seeds: int

    @property
    def sign(self) -> int:
        """1 or -1 if the interval lies on that side of 0; 0 if it holds it. One seed decides."""
        if abs(self.mean) <= self.half_width:
            return 0
        return 1 if self.mean > 0 else -1


def estimate(values: Iterable[float]) -> Estimate:
    """The mean of a sample and its interval.

    Raises:
        MissingResultError: the sample is empty.
    """
    sample = np.fromiter(values, dtype=np.float64)
    if not len(sample):
        raise MissingResultError("there is no result")
    if len(sample) == 1:
        return Estimate(float(sample[0]), 0.0, 1)
    quantile = _T95[len(sample) - 2] if len(sample) - 2 < len(_T95) else _Z95
    half_width = quantile * float(sample.std(ddof=1)) / math.sqrt(len(sample))
    return Estimate(float(sample.mean()), half_width, len(sample))


@dataclass(frozen=True, slots=True)
class CellResults:
    """The runs of one cell.

    Attributes:
        name: of the cell.
        axes: its place in the figure.
        runs: results by seed, with fields as attributes: of a swarm, or of an array.
    """

    name: str
    axes: Mapping[str, str]
    runs: Mapping[int, Any]

    def values(self, field: str) -> dict[int, float]:
        """A field of every run that has it, by seed."""
        found = {seed: getattr(run, field) for seed, run in sorted(self.runs.items())}
        return {seed: float(value) for seed, value in found.items() if value is not None}

    def estimate(self, field: str) -> Estimate:
        """Its mean and interval.

        Raises:
            MissingResultError: no run has it.
        """
        values = self.values(field)
        if not values:
            raise MissingResultError(f"there is no result of {self.name}")
        return estimate(values.values())


class Results:
    """The results of a figure's cells, by their places on its axes."""

    def __init__(self, cells: Iterable[CellResults]) -> None:
        self.cells = tuple(cell for cell in cells if cell.runs)

    def cell(self, **axes: str) -> CellResults:
        """The one cell at this place.

        Raises:
            MissingResultError: it has no result.
        """
        found = [cell for cell in self.cells if axes.items() <= cell.axes.items()]
        if len(found) != 1:
            where = " ".join(axes.values())
            raise MissingResultError(f"there is no result of {where}")
        return found[0]

    def mean(self, field: str = "offload", **axes: str) -> float:
        """The mean of a field over the seeds of a cell.

        Raises:
            MissingResultError: it has no result.
        """
        return self.cell(**axes).estimate(field).mean

    def difference(
        self, one: Mapping[str, str], other: Mapping[str, str], field: str = "offload"
    ) -> Estimate:
        """By how much one cell is above another, over the seeds that both have.

        Raises:
            MissingResultError: they have no seed in common.
        """
        left, right = (self.cell(**place).values(field) for place in (one, other))
        both = sorted(left.keys() & right.keys())
        return estimate(left[seed] - right[seed] for seed in both)

    def to_list(self, field: str) -> list[dict[str, Any]]:
        """As plain data, for JSON."""
        rows = []
        for cell in self.cells:
            value = cell.estimate(field)
            first = next(iter(cell.runs.values()))
            rows.append(
                {
                    "cell": cell.name,
                    "axes": dict(cell.axes),
                    field: round(value.mean, 4),
                    "half_width_95": round(value.half_width, 4),
                    "seeds": sorted(cell.runs),
                    "bound": round(cell.estimate("bound").mean, 4),
                    "efficiency": first.efficiency and round(cell.estimate("efficiency").mean, 4),
                }
            )
        return rows
