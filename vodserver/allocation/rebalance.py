"""Which replicas to move so that the disks are equally full again."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vodserver.allocation.base import Disks
from vodserver.errors import AllocationError

__all__ = ["Move", "rebalance_moves"]


@dataclass(frozen=True, slots=True)
class Move:
    """One replica that changes its disk.

    Attributes:
        extent: its extent, as the caller numbers them.
        source: the disk that holds it.
        target: the disk that gets it.
        size: its bytes.
    """

    extent: int
    source: int
    target: int
    size: int


def rebalance_moves(
    extents: Disks,
    disks: Disks,
    sizes: Disks,
    capacity_bytes: Disks,
    *,
    tolerance: float,
    rng: np.random.Generator,
    may_get: NDArray[np.bool_] | None = None,
) -> list[Move]:
    """Plan moves until each disk's used part is within `tolerance` of that of all together.

    Each move is from the fullest disk to the emptiest that can take something of it, and none
    takes a disk across the mean by more than the tolerance: so no byte is moved for nothing, and
    all that is moved beyond the least possible is less than an extent for each disk. Which
    replicas are moved is chance, so that the hot extents of a film do not gather on a disk that
    was added.

    Args:
        extents: the extent of each replica, as the caller numbers them, shape (replicas,).
        disks: the disk that it is on, likewise.
        sizes: its bytes, > 0, likewise.
        capacity_bytes: how large each disk is, shape (disks,); one of 0 neither gives nor gets.
        tolerance: as a part of a disk, >= 0.
        rng: the only source of chance.
        may_get: whether each disk can take more, shape (disks,); a disk that is full to the brim
            cannot, and still gives. All can if not given.

    Returns:
        The moves in the order in which to make them: none takes a disk out of the tolerance, and
        no disk ever holds two replicas of an extent. Where replicas that may not meet, or extents
        that are large beside the tolerance, leave nothing to move, that is where it ends.

    Raises:
        AllocationError: the arrays do not fit together.
    """
    if not len(extents) == len(disks) == len(sizes):
        raise AllocationError("each replica needs an extent, a disk and a size")
    if len(disks) and not 0 <= int(disks.min()) <= int(disks.max()) < len(capacity_bytes):
        raise AllocationError("each disk that holds a replica needs a capacity")
    used = np.zeros(len(capacity_bytes))
    np.add.at(used, disks, sizes)
    closed = set() if may_get is None else set(np.flatnonzero(~may_get).tolist())
    plan = _Plan(used, capacity_bytes, tolerance, closed)
    for row in rng.permutation(len(disks)).tolist():
        plan.add(int(extents[row]), int(disks[row]), int(sizes[row]))
    return plan.make()


class _Plan:
    """The state of a plan: how full disks would be, and what can still be moved.

    Args:
        used: bytes on each disk.
        capacity: how large each is.
        tolerance: as a part of a disk.
        closed: disks that cannot take more.
    """

    def __init__(
        self, used: NDArray[np.float64], capacity: Disks, tolerance: float, closed: set[int]
    ) -> None:
        usable = np.flatnonzero(capacity).tolist()
        total = int(capacity.sum())
        mean = float(used[usable].sum()) / total if total else 0.0
        self._capacity = [int(size) for size in capacity]
        self._used = [float(size) for size in used]
        self._low = [(mean - tolerance) * size for size in self._capacity]
        self._high = [(mean + tolerance) * size for size in self._capacity]
        # Roles never change: a disk that gives never gets, so no byte goes two ways.
        self._sources = [disk for disk in usable if self._part(disk) > mean]
        self._targets = [disk for disk in usable if self._part(disk) < mean and disk not in closed]
        self._replicas: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._holders: dict[int, set[int]] = defaultdict(set)
        self._moved: set[tuple[int, int]] = set()
        self._next: dict[tuple[int, int], int] = {}

    def add(self, extent: int, disk: int, size: int) -> None:
        """Take in a replica; those of a disk are moved in the order of being taken in."""
        self._replicas[disk].append((extent, size))
        self._holders[extent].add(disk)

    def make(self) -> list[Move]:
        """Plan all moves."""
        moves: list[Move] = []
        # What cannot go from one disk to another now never can: see _take.
        open_targets = {source: set(self._targets) for source in self._sources}
        while open_targets:
            source = max(open_targets, key=lambda disk: (self._part(disk), -disk))
            targets = open_targets[source]
            if not targets:
                del open_targets[source]
                continue
            target = min(targets, key=lambda disk: (self._part(disk), disk))
            move = self._take(source, target) if self._is_needed(source, target) else None
            if move is None:
                targets.discard(target)
            else:
                moves.append(move)
        return moves

    def _part(self, disk: int) -> float:
        """What part of a disk would be in use."""
        return self._used[disk] / self._capacity[disk]

    def _is_needed(self, source: int, target: int) -> bool:
        too_much = self._used[source] > self._high[source]
        return too_much or self._used[target] < self._low[target]

    def _take(self, source: int, target: int) -> Move | None:
        """Move the next replica that can go from one disk to another; None if none can.

        A replica that cannot is not looked at again for this pair: a target keeps what it has,
        and only fills up, while its source only empties.
        """
        replicas = self._replicas[source]
        for at in range(self._next.get((source, target), 0), len(replicas)):
            extent, size = replicas[at]
            self._next[source, target] = at + 1
            if (
                (extent, source) not in self._moved
                and target not in self._holders[extent]
                and self._used[source] - size >= self._low[source]
                and self._used[target] + size <= self._high[target]
            ):
                self._moved.add((extent, source))
                self._holders[extent].add(target)
                self._used[source] -= size
                self._used[target] += size
                return Move(extent, source, target, size)
        return None
