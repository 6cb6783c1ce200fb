"""The whole film on one disk: what most servers do, kept as the baseline."""

from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks
from vodserver.allocation.choosing import emptiest
from vodserver.allocation.frame import Frame

__all__ = ["Naive"]


class Naive(Frame):
    """One copy, on the disk of which least is in use: balanced by bytes, blind to popularity.

    Source: the thesis on commodity VoD storage, chapter 4 ("naive").
    """

    __slots__ = ()

    name: ClassVar[str] = "naive"
    copies: ClassVar[int] = 1
    min_disks: ClassVar[int] = 1

    def _place(
        self,
        extents: int,
        used: Disks,
        capacity: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the frame
    ) -> Disks:
        disk = emptiest(np.flatnonzero(capacity), used, capacity)
        return np.full((extents, 1), disk, dtype=np.int64)


ALLOCATIONS.register(Naive.name, Naive)
