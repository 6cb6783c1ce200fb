"""Which film each stream plays where servers are compared: the same for all of them. Pure.

Films are numbered by their popularity; a plain file server has film k on disk k mod D, so that its
films are spread as evenly as whole films can be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from experiments.arrays.disk import Fault

__all__ = ["DEMANDS", "Demand", "asked", "busiest", "places"]

_FILMS: Final = 1000
_MOST: Final = 256  # streams that are drawn at a time: the first n are the same however many


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Who plays what, and what is wrong with the disks."""

    zipf: float | None = None
    """Films are drawn, the one of rank r in proportion to r ** -zipf; None: each stream has a film
    of its own."""

    overload: float = 0.0
    """The films of the first disk are asked for so much more than others'."""

    faults: tuple[Fault, ...] = ()
    """On from the beginning."""


DEMANDS: Final[Mapping[str, Demand]] = {
    "uniform": Demand(),
    "Zipf 0.5": Demand(zipf=0.5),
    "Zipf 1.0": Demand(zipf=1.0),
    "one disk +80 %": Demand(overload=0.8),
    "one disk at half speed": Demand(faults=(Fault(disk=0, share=1.3),)),
}
"""By name. A disk that reads 1.3 useless bytes for each useful one takes twice as long for an
extent, its seek included."""


def asked(demand: Demand, disks: int, count: int, seed: int) -> list[int]:
    """The film of each of so many streams."""
    if demand.zipf is None:
        shares = np.ones(disks)
        shares[0] += demand.overload
        films, taken = [], np.zeros(disks, dtype=int)
        for _ in range(count):
            disk = int(np.argmin((taken + 0.5) / shares))
            films.append(int(taken[disk]) * disks + disk)
            taken[disk] += 1
        return films
    weights = np.arange(1.0, _FILMS + 1) ** -demand.zipf
    chance = np.random.default_rng([seed, 1])
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += chance.choice(_FILMS, _MOST, p=weights / weights.sum()).tolist()
    return drawn[:count]


def places(films: Sequence[int], disks: int) -> list[int]:
    """The same films by numbers that leave out those that nobody asks for, on the same disks."""
    found: dict[int, int] = {}
    taken = [0] * disks
    for film in films:
        disk = film % disks
        if film not in found:
            found[film] = taken[disk] * disks + disk
            taken[disk] += 1
    return [found[film] for film in films]


def busiest(films: Sequence[int], disks: int) -> int:
    """Streams of the disk that has most of them, where each film lies on one."""
    return int(np.bincount(np.array(films) % disks, minlength=disks).max())
