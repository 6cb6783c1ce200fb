"""Striping: the extents of a film on all disks in turn."""

from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks
from vodserver.allocation.frame import Frame

__all__ = ["Raid0"]


class Raid0(Frame):
    """One copy; extent b on disk b mod D, every film beginning on the first.

    Source: the thesis, chapter 4 ("raid0"): viewers who begin together go round the disks
    together, which is why it served fewest of them. A stripe is as wide on small disks as on
    large ones; disks that can take nothing are left out of it.
    """

    __slots__ = ()

    name: ClassVar[str] = "raid0"
    copies: ClassVar[int] = 1
    min_disks: ClassVar[int] = 1

    def _place(
        self,
        extents: int,
        used: Disks,  # noqa: ARG002 - part of the frame
        capacity: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the frame
    ) -> Disks:
        usable = np.flatnonzero(capacity)
        return usable[np.arange(extents) % len(usable)].astype(np.int64).reshape(-1, 1)


ALLOCATIONS.register(Raid0.name, Raid0)
