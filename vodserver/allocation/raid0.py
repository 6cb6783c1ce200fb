"""Striping: the extents of a film on all disks in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks, check_place
from vodserver.allocation.choosing import emptiest

__all__ = ["Raid0"]


@dataclass(frozen=True, slots=True)
class Raid0:
    """One copy; extent b on disk b mod D, every film beginning on the first.

    Source: the thesis, chapter 4 ("raid0"): viewers who begin together go round the disks
    together, which is why it served fewest of them. A stripe is as wide on small disks as on
    large ones; disks that can take nothing are left out of it.
    """

    name: ClassVar[str] = "raid0"
    copies: int = 1
    min_disks: int = 1

    def place(
        self,
        extents: int,
        used_bytes: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the protocol
        *,
        capacity_bytes: Disks | None = None,
    ) -> Disks:
        """Place extents on the usable disks in turn; see `Allocation.place`."""
        usable = np.flatnonzero(check_place(self, extents, used_bytes, capacity_bytes))
        return usable[np.arange(extents) % len(usable)].astype(np.int64).reshape(-1, 1)

    def replace(
        self,
        held: Sequence[int],  # noqa: ARG002 - part of the protocol
        candidates: Disks,
        used_bytes: Disks,
        capacity_bytes: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the protocol
    ) -> int:
        """Choose the emptiest disk: the stripe's own is gone; see `Allocation.replace`."""
        return emptiest(candidates, used_bytes, capacity_bytes)


ALLOCATIONS.register(Raid0.name, Raid0)
