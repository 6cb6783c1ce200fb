"""The whole film on one disk: what most servers do, kept as the baseline."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vodserver.allocation.base import ALLOCATIONS, check_place

__all__ = ["Naive"]


@dataclass(frozen=True, slots=True)
class Naive:
    """One copy, on the disk that holds least: balanced by bytes, blind to popularity.

    Source: the thesis on commodity VoD storage, chapter 4 ("naive").
    """

    name: ClassVar[str] = "naive"
    copies: int = 1
    min_disks: int = 1

    def place(
        self,
        extents: int,
        used_bytes: NDArray[np.int64],
        rng: np.random.Generator,  # noqa: ARG002 - part of the protocol
    ) -> NDArray[np.int64]:
        """Place every extent on the emptiest disk; see `Allocation.place`."""
        check_place(self, extents, len(used_bytes))
        return np.full((extents, 1), int(np.argmin(used_bytes)), dtype=np.int64)


ALLOCATIONS.register(Naive.name, Naive)
