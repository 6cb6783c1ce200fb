"""What a placement policy is, and the list of those there are."""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from toast.common.registry import Registry
from vodserver.errors import AllocationError

__all__ = ["ALLOCATIONS", "Allocation", "Disks", "check_place", "replacement", "with_copies"]

Disks = NDArray[np.int64]
"""One number for each disk, or the numbers of disks."""


class Allocation(Protocol):
    """Decides on which disks the extents of one film are written.

    A disk counts by its whole capacity, not by what is free on it: how often a disk is read
    should follow how much it holds, and new films, which are asked for most, should not all meet
    on the disk that was added last.

    Attributes:
        name: what settings and the catalog call the policy.
        copies: replicas of each extent.
        min_disks: fewest disks that it can work with.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - documented in the class

    @property
    def copies(self) -> int: ...  # noqa: D102 - documented in the class

    @property
    def min_disks(self) -> int: ...  # noqa: D102 - documented in the class

    def place(
        self,
        extents: int,
        used_bytes: Disks,
        rng: np.random.Generator,
        *,
        capacity_bytes: Disks | None = None,
    ) -> Disks:
        """Place the extents of one film.

        Args:
            extents: how many there are, > 0.
            used_bytes: what each disk already holds, shape (disks,).
            rng: the only source of chance.
            capacity_bytes: how large each disk is, shape (disks,); 0 for one that gets nothing
                (full, draining, not there). All alike if not given.

        Returns:
            Disk numbers, shape (extents, copies); the copies of one extent are on different disks.

        Raises:
            AllocationError: fewer usable disks than `min_disks`, or no extents.
        """
        ...

    def replace(
        self,
        held: Sequence[int],
        candidates: Disks,
        used_bytes: Disks,
        capacity_bytes: Disks,
        rng: np.random.Generator,
    ) -> int:
        """Choose the disk for one replica that is remade; see `replacement`, which checks.

        Args:
            held: disks that hold the extent's other replicas.
            candidates: numbers of the disks that may get it, >= 1 of them.
            used_bytes: what each disk holds, shape (disks,).
            capacity_bytes: how large each disk is, shape (disks,).
            rng: the only source of chance.
        """
        ...


ALLOCATIONS: Final[Registry[Allocation]] = Registry("placement policy", AllocationError)
"""Every policy by its name."""


def with_copies(name: str, copies: int | None) -> Allocation:
    """The policy of a name, or that of its family which makes so many copies: `rda-3` of `rda`.

    Args:
        name: of the policy.
        copies: replicas of each extent; as many as it makes if None.

    Raises:
        AllocationError: there is no such policy, or none that makes so many.
    """
    policy = ALLOCATIONS.create(name)
    if copies is None or policy.copies == copies:
        return policy
    other = f"{name}-{copies}"
    if other not in ALLOCATIONS.names():
        raise AllocationError(
            f"placement '{name}' makes {policy.copies} of each extent, not {copies}: "
            "choose 'rda', which makes 2 or 3"
        )
    return ALLOCATIONS.create(other)


def check_place(
    policy: Allocation, extents: int, used_bytes: Disks, capacity_bytes: Disks | None
) -> Disks:
    """Refuse what no placement can satisfy.

    Returns:
        The capacities, shape (disks,), all 1 if none are given.

    Raises:
        AllocationError: fewer usable disks than the policy needs, or no extents.
    """
    capacity = _capacities(used_bytes, capacity_bytes)
    usable = np.count_nonzero(capacity)
    if usable < policy.min_disks:
        raise AllocationError(
            f"placement '{policy.name}' needs {policy.min_disks} disks and there are {usable} "
            "that can take more: give more --disk directories"
        )
    if extents < 1:
        raise AllocationError("a film of no extents cannot be placed")
    return capacity


def replacement(
    policy: Allocation,
    disks: Sequence[int],
    used_bytes: Disks,
    capacity_bytes: Disks | None,
    rng: np.random.Generator,
) -> int:
    """Choose the disk on which a lost replica, or one on a draining disk, is made again.

    Args:
        policy: the store's; it would have put the replica there too.
        disks: those that must not get it: they hold another replica of the extent.
        used_bytes: what each disk holds, shape (disks,).
        capacity_bytes: how large each is, shape (disks,); 0 for one that gets nothing. All alike
            if not given.
        rng: the only source of chance.

    Raises:
        AllocationError: no disk is left that could take it.
    """
    capacity = _capacities(used_bytes, capacity_bytes)
    free = capacity > 0
    held = [int(disk) for disk in disks]
    free[held] = False
    candidates = np.flatnonzero(free).astype(np.int64)
    if not len(candidates):
        raise AllocationError(
            "no disk is left that could take another copy: add one with 'vodserver disk add'"
        )
    return int(policy.replace(held, candidates, used_bytes, capacity, rng))


def _capacities(used_bytes: Disks, capacity_bytes: Disks | None) -> Disks:
    if capacity_bytes is None:
        return np.ones(len(used_bytes), dtype=np.int64)
    if len(capacity_bytes) != len(used_bytes) or np.any(capacity_bytes < 0):
        raise AllocationError("each disk needs one capacity, 0 bytes or more")
    return np.asarray(capacity_bytes, dtype=np.int64)
