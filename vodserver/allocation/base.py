"""What a placement policy is, and the list of those there are."""

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from vodserver.errors import AllocationError

__all__ = ["ALLOCATIONS", "Allocation", "allocation_named", "check_place", "register"]


class Allocation(Protocol):
    """Decides on which disks the extents of one film are written.

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
        self, extents: int, used_bytes: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Place the extents of one film.

        Args:
            extents: how many there are, > 0.
            used_bytes: what each disk already holds, shape (disks,).
            rng: the only source of chance.

        Returns:
            Disk numbers, shape (extents, copies); the copies of one extent are on different disks.

        Raises:
            AllocationError: fewer disks than `min_disks`, or no extents.
        """
        ...


ALLOCATIONS: Final[dict[str, Allocation]] = {}
"""Every policy by its name."""


def register(policy: Allocation) -> None:
    """Make a policy known by its name."""
    ALLOCATIONS[policy.name] = policy


def allocation_named(name: str) -> Allocation:
    """The policy of this name.

    Raises:
        AllocationError: there is none.
    """
    try:
        return ALLOCATIONS[name]
    except KeyError:
        known = ", ".join(sorted(ALLOCATIONS))
        raise AllocationError(f"no placement policy '{name}': choose one of {known}") from None


def check_place(policy: Allocation, extents: int, disks: int) -> None:
    """Refuse what no placement can satisfy.

    Raises:
        AllocationError: fewer disks than the policy needs, or no extents.
    """
    if disks < policy.min_disks:
        raise AllocationError(
            f"placement '{policy.name}' needs {policy.min_disks} disks and there are {disks}: "
            "give more --disk directories"
        )
    if extents < 1:
        raise AllocationError("a film of no extents cannot be placed")
