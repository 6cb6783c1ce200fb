"""One measurement of a cell: streams that an array sustains, or what so many go through.

Pure; the same cell and seed bring the same figures.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.search import sustained
from experiments.arrays.sim import simulate
from experiments.errors import ScenarioError

__all__ = ["Measure", "Work", "measure"]


class Measure(StrEnum):
    """What is asked of a cell."""

    SUSTAINED = "sustained"
    """How many streams none of which ever starves."""
    RUN = "run"
    """What so many streams go through."""
    AT_SUSTAINED = "at sustained"
    """What as many streams go through as the same array sustains without its faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is run in a cell.

    Attributes:
        scenario: the array and its load.
        measure: what is asked.
        streams: how many, where that is given; else a share of the closed form's.
        share: that share.
    """

    scenario: ArrayScenario
    measure: Measure = Measure.SUSTAINED
    streams: int | None = None
    share: float = 1.0

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "scenario": self.scenario.describe(),
            "measure": str(self.measure),
            "streams": self.streams,
            "share": self.share,
        }


@lru_cache(maxsize=64)
def _well(scenario: ArrayScenario, seed: int) -> int:
    """What an array sustains; one search serves all the faults that are tried on it."""
    return sustained(scenario, seed=seed)


def measure(work: Work, seed: int) -> dict[str, float]:
    """The figures of a cell with a seed.

    Raises:
        ScenarioError: the cell cannot be.
    """
    scenario = work.scenario
    model = round(scenario.model_streams, 2)
    if work.measure is Measure.SUSTAINED:
        return {"streams": sustained(scenario, seed=seed), "model_streams": model}
    streams = work.streams
    if work.measure is Measure.AT_SUSTAINED:
        streams = _well(scenario.with_(faults=()), seed)
    streams = streams or int(work.share * scenario.model_streams)
    if streams < 1:
        raise ScenarioError("this array does not sustain a single stream")
    return simulate(scenario, streams, seed=seed).to_dict()
