"""What the policies have in common: what cannot be placed is refused, and an order of arguments."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vodserver.allocation.base import Disks, check_place
from vodserver.allocation.choosing import draw, emptiest

__all__ = ["Drawn", "Frame"]


@dataclass(frozen=True, slots=True)
class Frame(ABC):
    """An `Allocation` but for where the extents of a film go; lost replicas go to the emptiest."""

    name: ClassVar[str]
    copies: ClassVar[int]
    min_disks: ClassVar[int]

    def place(
        self,
        extents: int,
        used_bytes: Disks,
        rng: np.random.Generator,
        *,
        capacity_bytes: Disks | None = None,
    ) -> Disks:
        """Place the extents of one film; see `Allocation.place`."""
        capacity = check_place(self, extents, used_bytes, capacity_bytes)
        return self._place(extents, used_bytes, capacity, rng)

    @abstractmethod
    def _place(self, extents: int, used: Disks, capacity: Disks, rng: np.random.Generator) -> Disks:
        """The same, of what can be placed: the capacities are known, and enough are not 0."""

    def replace(
        self,
        held: Sequence[int],  # noqa: ARG002 - for policies that mind where the others are
        candidates: Disks,
        used_bytes: Disks,
        capacity_bytes: Disks,
        rng: np.random.Generator,  # noqa: ARG002 - for policies that draw
    ) -> int:
        """Choose the emptiest disk; see `Allocation.replace`."""
        return emptiest(candidates, used_bytes, capacity_bytes)


class Drawn(Frame):
    """Draws different disks for every extent, independently, each as likely as it is large."""

    __slots__ = ()

    def _place(
        self,
        extents: int,
        used: Disks,  # noqa: ARG002 - part of the frame
        capacity: Disks,
        rng: np.random.Generator,
    ) -> Disks:
        return draw(extents, self.copies, capacity, rng)

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
