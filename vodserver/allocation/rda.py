"""Random duplicate assignment: each extent on two different disks at random."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vodserver.allocation.base import ALLOCATIONS, check_place

__all__ = ["Rda"]


@dataclass(frozen=True, slots=True)
class Rda:
    """Two copies on a uniformly random pair of different disks, independently for each extent.

    With the shorter of two queues to read from, N extents leave D disks in ceil(N/D)+1 rounds
    with high probability (Sanders, Egner, Korst, SODA 2000), and no disk's loss or slowness
    takes any film away (thesis, chapter 4).
    """

    name: ClassVar[str] = "rda"
    copies: int = 2
    min_disks: int = 2

    def place(
        self, extents: int, used_bytes: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw a pair for every extent; see `Allocation.place`."""
        disks = len(used_bytes)
        check_place(self, extents, disks)
        first = rng.integers(0, disks, size=extents, dtype=np.int64)
        # A step of 1..disks-1 round the ring: every ordered pair of different disks, equally often.
        step = rng.integers(1, disks, size=extents, dtype=np.int64)
        return np.stack([first, (first + step) % disks], axis=1)


ALLOCATIONS.register(Rda.name, Rda)
