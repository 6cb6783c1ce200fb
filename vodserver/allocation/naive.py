"""The whole film on one disk: what most servers do, kept as the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks, check_place
from vodserver.allocation.choosing import emptiest

__all__ = ["Naive"]


@dataclass(frozen=True, slots=True)
class Naive:
    """One copy, on the disk of which least is in use: balanced by bytes, blind to popularity.

    Source: the thesis on commodity VoD storage, chapter 4 ("naive").
    """

    name: ClassVar[str] = "naive"
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
        """Place every extent on the emptiest disk; see `Allocation.place`."""
        capacity = check_place(self, extents, used_bytes, capacity_bytes)
        disk = emptiest(np.flatnonzero(capacity), used_bytes, capacity)
        return np.full((extents, 1), disk, dtype=np.int64)

    def replace(
        self,
        held: Sequence[int],  # noqa: ARG002 - part of the protocol
        candidates: Disks,
        used_bytes: Disks,
        capacity_bytes: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the protocol
    ) -> int:
        """Choose the emptiest disk; see `Allocation.replace`."""
        return emptiest(candidates, used_bytes, capacity_bytes)


ALLOCATIONS.register(Naive.name, Naive)
