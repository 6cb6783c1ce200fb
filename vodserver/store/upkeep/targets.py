"""Which disk takes a replica that has to go somewhere."""

from collections.abc import Iterable

import numpy as np

from vodserver.allocation.base import Disks, replacement
from vodserver.errors import AllocationError
from vodserver.store.catalog import DiskRow, Extent
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["arrays_of", "choose_target"]


def arrays_of(workshop: Workshop, rows: Iterable[DiskRow]) -> tuple[Disks, Disks]:
    """What the policies count with: used and capacity by disk number, in bytes.

    Args:
        workshop: of the store.
        rows: the disks that may be used; the others have no capacity.

    Returns:
        Both of shape (highest number + 1,).
    """
    count = 1 + max((row.number for row in workshop.store.disk_rows), default=-1)
    used = np.zeros(count, dtype=np.int64)
    for number, size in workshop.used().items():
        used[number] = size
    capacity = np.zeros(count, dtype=np.int64)
    chosen = list(rows)
    # Capacities are known of all of them or count for none: an unknown one would get nothing.
    known = all(row.capacity_bytes for row in chosen)
    for row in chosen:
        capacity[row.number] = row.capacity_bytes if known else 1
    return used, capacity


def choose_target(
    workshop: Workshop,
    extent: Extent,
    rng: np.random.Generator,
    *,
    avoid: int | None = None,
    preferred: int | None = None,
) -> int:
    """A disk for a replica that an extent has to get.

    Args:
        workshop: of the store.
        extent: which extent; its disks do not get another.
        rng: the only source of chance.
        avoid: the disk that it is to leave.
        preferred: a disk to take if it can.

    Raises:
        AllocationError: there is none.
    """
    taken = {*extent.disks, *(() if avoid is None else (avoid,))}
    able = [row for row in workshop.store.disk_rows if workshop.can_take(row)]
    if preferred not in taken and any(row.number == preferred for row in able):
        assert preferred is not None, "None is no row's number"
        return preferred
    if not any(row.number not in taken for row in able):
        raise AllocationError(
            f"no disk can take another replica of extent {extent.number}: "
            "add one with 'vodserver disk add'"
        )
    used, capacity = arrays_of(workshop, able)
    return replacement(workshop.policy, sorted(taken), used, capacity, rng)
