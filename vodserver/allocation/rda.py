"""Random duplicate assignment: each extent on two different disks at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks, check_place
from vodserver.allocation.choosing import draw

__all__ = ["Rda"]


@dataclass(frozen=True, slots=True)
class Rda:
    """Two copies on a random pair of different disks, independently for each extent.

    With the shorter of two queues to read from, N extents leave D disks in ceil(N/D)+1 rounds
    with high probability (Sanders, Egner, Korst, SODA 2000), and no disk's loss or slowness
    takes any film away (thesis, chapter 4). Disks of one size make every pair equally likely;
    otherwise each disk's share follows its capacity, up to one copy of every extent.
    """

    name: ClassVar[str] = "rda"
    copies: int = 2
    min_disks: int = 2

    def place(
        self,
        extents: int,
        used_bytes: Disks,
        rng: np.random.Generator,
        *,
        capacity_bytes: Disks | None = None,
    ) -> Disks:
        """Draw a pair for every extent; see `Allocation.place`."""
        capacity = check_place(self, extents, used_bytes, capacity_bytes)
        return draw(extents, 2, capacity, rng)

    def replace(
        self,
        held: Sequence[int],  # noqa: ARG002 - part of the protocol
        candidates: Disks,
        used_bytes: Disks,  # noqa: ARG002 - part of the protocol
        capacity_bytes: Disks,
        rng: np.random.Generator,
    ) -> int:
        """Draw one of the other disks; see `Allocation.replace`."""
        return int(candidates[draw(1, 1, capacity_bytes[candidates], rng)[0, 0]])


ALLOCATIONS.register(Rda.name, Rda)
