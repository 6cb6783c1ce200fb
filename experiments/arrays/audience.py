"""Which film each stream plays, from when on, and on which disks that lies. Pure."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from experiments.arrays.scenario import ArrayScenario
from vodserver.allocation import ALLOCATIONS, Allocation
from vodserver.allocation.frame import Drawn

__all__ = ["Audience", "Stream"]

_FILM_SECONDS: Final = 1200.0
"""A film goes round after so long: longer than any run has to be in memory."""


class _Everywhere(Drawn):
    """Every extent on each of eight disks: the one queue that no copies can be better than."""

    __slots__ = ()

    name: ClassVar[str] = "rda-8"
    copies: ClassVar[int] = 8
    min_disks: ClassVar[int] = 8


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream.

    Attributes:
        film: which.
        begins_seconds: when it is asked for.
        extents: disks of each extent of the film, in placement order.
    """

    film: int
    begins_seconds: float
    extents: Sequence[tuple[int, ...]] = field(repr=False)


class Audience:
    """The streams of a scenario: the first n are the same however many there are.

    Args:
        scenario: the load, and the placement.
        seed: of all chance.
        film_seconds: after which a film that is watched for longer goes round.
    """

    def __init__(
        self, scenario: ArrayScenario, seed: int, *, film_seconds: float = _FILM_SECONDS
    ) -> None:
        self._scenario = scenario
        self._film_seconds = film_seconds
        self._places, self._choices, self._times = (
            np.random.default_rng([seed, n]) for n in range(3)
        )
        self._allocation = _create_allocation(scenario.allocation)
        self._extents: list[list[tuple[int, ...]]] = []
        self._before: np.random.Generator | None = None
        self._used = np.zeros(len(scenario.disks), dtype=np.int64)
        self._films: list[int] = []
        self._begins: list[float] = []
        self._by_rank: np.ndarray | None = None

    def streams(self, count: int) -> list[Stream]:
        """The first so many streams, in the order of their beginning."""
        load = self._scenario.load
        films = self._drawn(count) if load.zipf is not None else self._balanced(count)
        if load.mean_gap_seconds is not None:
            while len(self._begins) < count:
                before = self._begins[-1] if self._begins else 0.0
                gap = float(self._times.exponential(load.mean_gap_seconds))
                self._begins.append(before + gap)
            begins = self._begins[:count]
        else:
            while len(self._begins) < count:
                self._begins.append(float(self._times.uniform(0.0, load.window_seconds)))
            begins = self._begins[:count]
        found = [Stream(film, at, self._film(film)) for film, at in zip(films, begins, strict=True)]
        return sorted(found, key=lambda stream: stream.begins_seconds)

    @property
    def films(self) -> Sequence[Sequence[tuple[int, ...]]]:
        """The films that streams were found for, and all before them: disks of their extents."""
        return self._extents

    @property
    def chance_of_places(self) -> np.random.Generator:
        """Chance as it was before the first film was placed: it places the same films alike."""
        return copy.deepcopy(self._before or self._places)

    def _film(self, film: int) -> list[tuple[int, ...]]:
        """The places of a film; films are added to the store one after the other."""
        scenario = self._scenario
        if self._before is None:
            self._before = copy.deepcopy(self._places)
        while len(self._extents) <= film:
            played = scenario.watch_seconds or self._film_seconds
            count = max(1, math.ceil(played / scenario.extent_seconds - 1e-9))
            placed = self._allocation.place(count, self._used, self._places)
            self._used += np.bincount(placed.ravel(), minlength=len(self._used))
            self._extents.append([tuple(row) for row in placed.tolist()])
        return self._extents[film]

    def _balanced(self, count: int) -> list[int]:
        """A film of its own for each, those of the first disk or pair so much more often.

        Films that are added in turn go to the groups (disks or pairs) in turn. Where no film lies
        on one disk, the same films are asked for as would be under `naive`.
        """
        groups = len(self._scenario.disks) // (2 if self._scenario.allocation == "raid1" else 1)
        weights = np.ones(groups)
        weights[0] += self._scenario.load.overload
        films, taken = [], np.zeros(groups, dtype=int)
        for _ in range(count):
            group = int(np.argmin((taken + 0.5) / weights))
            films.append(int(taken[group]) * groups + group)
            taken[group] += 1
        return films

    def _drawn(self, count: int) -> list[int]:
        scenario = self._scenario
        if self._by_rank is None:
            if scenario.load.clustered:
                first = [self._film(film)[0][0] for film in range(scenario.films)]
                self._by_rank = np.argsort(np.array(first), kind="stable")
            else:
                self._by_rank = self._places.permutation(scenario.films)
        while len(self._films) < count:
            assert scenario.load.zipf is not None
            weights = np.arange(1, scenario.films + 1) ** -scenario.load.zipf
            drawn = self._choices.choice(scenario.films, 1024, p=weights / weights.sum())
            self._films.extend(self._by_rank[drawn].tolist())
        return self._films[:count]


def _create_allocation(name: str) -> Allocation:
    return _Everywhere() if name == _Everywhere.name else ALLOCATIONS.create(name)
