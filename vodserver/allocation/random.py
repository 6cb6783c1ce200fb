"""Each extent on one disk at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks, check_place
from vodserver.allocation.choosing import draw

__all__ = ["Random"]


@dataclass(frozen=True, slots=True)
class Random:
    """One copy, on a disk drawn for each extent independently, each as likely as it is large.

    Source: the thesis, chapter 4 ("random"): no film has a disk of its own, but of D requests
    some disk has Theta(log D / log log D) with high probability, and a lost disk takes a part of
    every film.
    """

    name: ClassVar[str] = "random"
    copies: int = 1
    min_disks: int = 1

    def place(
        self,
        extents: int,
        used_bytes: Disks,
        rng: np.random.Generator,
        *,
        capacity_bytes: Disks | None = None,
    ) -> Disks:
        """Draw a disk for every extent; see `Allocation.place`."""
        capacity = check_place(self, extents, used_bytes, capacity_bytes)
        return draw(extents, 1, capacity, rng)

    def replace(
        self,
        held: Sequence[int],  # noqa: ARG002 - part of the protocol
        candidates: Disks,
        used_bytes: Disks,  # noqa: ARG002 - part of the protocol
        capacity_bytes: Disks,
        rng: np.random.Generator,
    ) -> int:
        """Draw a disk; see `Allocation.replace`."""
        return int(candidates[draw(1, 1, capacity_bytes[candidates], rng)[0, 0]])


ALLOCATIONS.register(Random.name, Random)
