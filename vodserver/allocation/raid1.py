"""Mirroring: the whole film on both disks of a pair."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from vodserver.allocation.base import ALLOCATIONS, Disks
from vodserver.allocation.choosing import emptiest, fill
from vodserver.allocation.frame import Frame
from vodserver.errors import AllocationError

__all__ = ["Raid1"]


class Raid1(Frame):
    """Two copies, on disks 2k and 2k + 1: the pair of which least is in use.

    Source: the thesis, chapter 4 ("raid1"). Of an odd number of disks the last has no partner and
    stays empty. A pair is as full as the fuller of its two disks.
    """

    __slots__ = ()

    name: ClassVar[str] = "raid1"
    copies: ClassVar[int] = 2
    min_disks: ClassVar[int] = 2

    def _place(
        self,
        extents: int,
        used: Disks,
        capacity: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the frame
    ) -> Disks:
        pairs = len(capacity) // 2
        full = fill(used, capacity)[: 2 * pairs].reshape(pairs, 2).max(axis=1)
        pair = int(np.argmin(full))
        if not np.isfinite(full[pair]):
            raise AllocationError(
                "placement 'raid1' needs both disks 2k and 2k+1 of a pair, and no pair can take "
                "more: add disks, or replace the one that is full or draining"
            )
        placed = np.empty((extents, 2), dtype=np.int64)
        # The first replica is on either disk in turn: who reads the first of equals reads both.
        placed[0::2] = (2 * pair, 2 * pair + 1)
        placed[1::2] = (2 * pair + 1, 2 * pair)
        return placed

    def replace(
        self,
        held: Sequence[int],
        candidates: Disks,
        used_bytes: Disks,
        capacity_bytes: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - part of the protocol
    ) -> int:
        """Choose the partner of what is left, else the emptiest; see `Allocation.replace`."""
        partners = [disk ^ 1 for disk in held if disk ^ 1 in candidates]
        return partners[0] if partners else emptiest(candidates, used_bytes, capacity_bytes)


ALLOCATIONS.register(Raid1.name, Raid1)
