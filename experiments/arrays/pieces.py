"""Piece requests: what swarms ask of their VoD server, as a load of its disks. Pure.

Each request is a stream of one read. The simulator answers it when all of its extent is in, the
server when its own part is: so answers are told a little too late, and never too soon.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from experiments.arrays.audience import Audience, Stream
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.sim import simulate
from experiments.sim.origin import Asked
from experiments.sim.trace import trace_origin
from experiments.swarms.presets import scaled
from experiments.swarms.scenario import Scenario
from experiments.swarms.text import describe
from vodserver.store.plan import cut_of

__all__ = ["PieceAudience", "PieceWork", "measure_pieces", "of_swarm"]

_MOST_EXTENTS: Final = 1 << 12


def of_swarm(array: ArrayScenario, swarm: Scenario) -> ArrayScenario:
    """An array that holds films as a swarm watches them, cut as the server cuts them."""
    film = swarm.film
    extent = cut_of(film.film_bytes, film.duration_seconds, film.piece_bytes).extent_bytes
    rate = film.film_bytes / film.duration_seconds
    return array.with_(stream_rate=rate, extent_seconds=extent / rate, watch_seconds=extent / rate)


class PieceAudience(Audience):
    """Requests of so many swarms at a time, each of its own film and at its own point of the trace.

    Args:
        scenario: the array, as of `of_swarm`.
        seed: of placements, and of where in the trace each swarm is.
        trace: what one swarm asks for.
        swarms: how many.
        film_bytes: of each film.
    """

    def __init__(
        self,
        scenario: ArrayScenario,
        seed: int,
        *,
        trace: tuple[Asked, ...],
        swarms: int,
        film_bytes: int,
    ) -> None:
        extent_bytes = scenario.unit_bytes
        extents = -(-film_bytes // extent_bytes)
        placing = scenario.with_(watch_seconds=None)
        super().__init__(placing, seed, film_seconds=extents * scenario.extent_seconds)
        period = trace[-1].seconds + 1e-3
        chance = np.random.default_rng([seed, 4])
        shifts = chance.uniform(0.0, period, swarms).tolist()
        self._asked = sorted(
            ((asked.seconds + shift) % period, swarm, asked.offset // extent_bytes)
            for swarm, shift in enumerate(shifts)
            for asked in trace
        )

    def within(self, seconds: float) -> int:
        """How many requests are made in the first so many seconds."""
        return sum(at < seconds for at, _, _ in self._asked)

    def streams(self, count: int) -> list[Stream]:
        """The first so many requests."""
        return [
            Stream(swarm * _MOST_EXTENTS + extent, at, [self._film(swarm)[extent]])
            for at, swarm, extent in self._asked[:count]
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceWork:
    """A measurement of piece requests.

    Attributes:
        array: disks, placement, scheduler and memory.
        scale: of the source's swarm.
        upload: of its viewers, as a share of the film's bit rate.
        swarms: how many there are.
        seconds: for how long requests come.
    """

    array: ArrayScenario
    scale: str = "compressed"
    upload: float = 0.5
    swarms: int
    seconds: float = 60.0

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "array": self.array.describe(),
            "swarm": describe(scaled(self.scale, upload=self.upload)),
            "swarms": self.swarms,
            "seconds": self.seconds,
        }


@lru_cache(maxsize=4)
def _trace(scale: str, upload: float) -> tuple[Asked, ...]:
    return trace_origin(scaled(scale, upload=upload))


def measure_pieces(work: PieceWork, seed: int) -> dict[str, float]:
    """How long piece requests take."""
    swarm = scaled(work.scale, upload=work.upload)
    scenario = of_swarm(work.array, swarm)
    audience = PieceAudience(
        scenario,
        seed,
        trace=_trace(work.scale, work.upload),
        swarms=work.swarms,
        film_bytes=swarm.film.film_bytes,
    )
    count = audience.within(work.seconds)
    told = simulate(scenario, count, seed=seed, audience=audience).to_dict()
    return {**told, "requests_per_second": round(count / work.seconds, 2)}
