"""Which real runs a figure takes, and what the simulator says of each. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from experiments.arrays.audience import Audience
from experiments.arrays.result import ArrayResult
from experiments.arrays.runs import Measured
from experiments.arrays.scaling import FILM_SECONDS, scaled_work
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.search import sustained
from experiments.arrays.sim import simulate
from experiments.arrays.work import Measure, Work
from experiments.figures.figure import Figure, FigureCell

__all__ = ["REAL_FIGURES", "SHARES", "Planned", "Trial", "is_search", "plan"]

REAL_FIGURES: Final = (
    *("4.2", "4.3", "4.4", "4.5", "4.6", "4.7"),
    *("sick", "passing", "admission"),
)
"""The figures of arrays that can be made for real."""

SHARES: Final = (0.95, 1.05)
"""Of what the simulator sustains: the first must hold, the second starve."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A real run.

    Attributes:
        scenario: scaled.
        streams: how many come.
    """

    scenario: ArrayScenario
    streams: int

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        told = {"scenario": self.scenario.describe(), "streams": self.streams}
        return {**told, "film_seconds": FILM_SECONDS}


@dataclass(frozen=True, slots=True)
class Planned:
    """A real run of a figure's bar.

    Attributes:
        measured: the run, with its seed; the cell is a `Trial`.
        share: of what the simulator sustains; None where the bar is a run of so many streams.
        sustained: what that is; None likewise.
    """

    measured: Measured
    share: float | None = None
    sustained: int | None = None

    @property
    def trial(self) -> Trial:
        """What is run."""
        trial = self.measured.cell.scenario
        assert isinstance(trial, Trial)
        return trial

    def simulated(self) -> ArrayResult:
        """What the simulator says of the same streams, on the same disks."""
        scenario, seed = self.trial.scenario, self.measured.seed
        audience = Audience(scenario, seed, film_seconds=FILM_SECONDS)
        return simulate(scenario, self.trial.streams, seed=seed, audience=audience)


def is_search(figure: Figure) -> bool:
    """Whether a figure's bars are what arrays sustain."""
    return all(cell.scenario.measure is Measure.SUSTAINED for cell in figure.cells("source"))


def plan(figure: Figure, seeds: Sequence[int]) -> Iterator[Planned]:
    """The real runs of a figure, all of a seed before those of the next."""
    for seed in seeds:
        for cell in figure.cells("source"):
            work: Work = scaled_work(cell.scenario)
            if work.measure is Measure.SUSTAINED:
                limit = _sustained(work.scenario, seed)
                for share in SHARES:
                    streams = _near(limit, share)
                    yield Planned(_measured(cell, work, streams, seed), share, limit)
                continue
            streams = work.streams or int(work.share * work.scenario.model_streams)
            if work.measure is Measure.AT_SUSTAINED:
                streams = _sustained(work.scenario.with_(faults=()), seed)
            yield Planned(_measured(cell, work, streams, seed))


def _measured(cell: FigureCell, work: Work, streams: int, seed: int) -> Measured:
    return Measured(FigureCell(cell.name, Trial(work.scenario, streams), cell.axes), seed)


def _near(limit: int, share: float) -> int:
    """A share of what is sustained, at the least one stream away: arrays this small have few."""
    near = round(share * limit)
    return max(min(near, limit - 1), 1) if share < 1 else max(near, limit + 1)


@lru_cache(maxsize=256)
def _sustained(scenario: ArrayScenario, seed: int) -> int:
    audience = Audience(scenario, seed, film_seconds=FILM_SECONDS)
    return sustained(scenario, seed=seed, audience=audience)
