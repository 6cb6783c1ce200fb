"""What carries a scenario out: the simulator, or a swarm of real viewers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from experiments.swarms.result import RunResult
from experiments.swarms.scenario import Scenario

__all__ = ["Engine", "Progress", "Say"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        seconds: of the scenario that have passed.
        end_seconds: when it will be over, as far as is known.
        arrived: viewers that have come.
        watching: viewers that watch now.
        offload: so far; None while nothing was played.
    """

    seconds: float
    end_seconds: float
    arrived: int
    watching: int
    offload: float | None


Say = Callable[[Progress], None]
"""Is told now and then how far a run is."""


class Engine(Protocol):
    """Carries scenarios out."""

    @property
    def name(self) -> str:
        """The word for it: sim, or real."""

    def run(self, scenario: Scenario, say: Say = lambda _: None) -> RunResult:
        """Carry a scenario out, from the first arrival to the end.

        Raises:
            ScenarioError: this engine cannot do that.
            LabError: a run failed; everything it started has been ended.
        """
