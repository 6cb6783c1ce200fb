"""Which replica of an extent the seed reads. Decisions only: no I/O, no clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

__all__ = ["DiskLoads", "Move", "Offered", "plan_moves"]

_USUAL_RATE: Final = 100e6
"""Bytes per second of a disk that nobody has measured yet."""

_WORTH: Final = 2.0
"""A replica is left for one whose disk has less than 1/_WORTH of the load: moving for little would
move back at the next look."""


@dataclass(slots=True)
class DiskLoads:
    """What is known of the disks that hold replicas.

    Attributes:
        seconds: how long a read asked of each would take now, and what the seed reads there in a
            second besides; 0 where nothing is known.
        rates: bytes per second that each can read.
        leaving: disks that are gone, failing or to be emptied: taken only if there is no other.
    """

    seconds: dict[int, float] = field(default_factory=dict)
    rates: dict[int, float] = field(default_factory=dict)
    leaving: frozenset[int] = frozenset()

    def load(self, disk: int) -> float:
        """Expected load of a disk, seconds."""
        return self.seconds.get(disk, 0.0)

    def ranked(self, disks: Iterable[int]) -> list[int]:
        """The disks, best first; of equals the one that stands first."""
        return sorted(disks, key=lambda disk: (disk in self.leaving, self.load(disk)))

    def cost(self, disk: int, read_bytes: float) -> float:
        """Seconds that so many bytes occupy a disk."""
        return read_bytes / self.rates.get(disk, _USUAL_RATE)

    def add(self, disk: int, read_bytes: float) -> None:
        """Count in bytes that a disk is to read each second, or (less than 0) no longer."""
        self.seconds[disk] = self.load(disk) + self.cost(disk, read_bytes)


@dataclass(frozen=True, slots=True)
class Offered:
    """An extent on offer.

    Attributes:
        key: what it is to the caller.
        disk: which replica is read.
        others: disks with another verified replica of it.
        load: bytes per second that are read from it.
    """

    key: tuple[str, int]
    disk: int
    others: tuple[int, ...]
    load: float


@dataclass(frozen=True, slots=True)
class Move:
    """An extent to be read from another disk.

    Attributes:
        key: which extent.
        disk: from now on.
    """

    key: tuple[str, int]
    disk: int


def plan_moves(offered: Sequence[Offered], loads: DiskLoads, most: int) -> list[Move]:
    """Moves that empty leaving disks and relieve loaded ones.

    Args:
        offered: the extents.
        loads: of the disks, with what is read of the extents counted in; left as it is.
        most: no more moves than these.
    """
    expected = DiskLoads(dict(loads.seconds), loads.rates, loads.leaving)
    # Those that must go, first; then the ones whose going relieves most.
    urgent = sorted(offered, key=lambda each: (each.disk not in loads.leaving, -each.load))
    moves: list[Move] = []
    for each in urgent:
        if len(moves) >= most:
            break
        best = next(iter(expected.ranked(each.others)), None)
        if best is None or not _is_worth(each, best, expected):
            continue
        expected.add(each.disk, -each.load)
        expected.add(best, each.load)
        moves.append(Move(each.key, best))
    return moves


def _is_worth(each: Offered, best: int, loads: DiskLoads) -> bool:
    if best in loads.leaving:
        return False
    if each.disk in loads.leaving:
        return True
    there = loads.load(best) + loads.cost(best, each.load)
    return each.load > 0 and loads.load(each.disk) > _WORTH * there
