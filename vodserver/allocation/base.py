"""What a placement policy is, and the list of those there are."""

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from toast.common.registry import Registry
from vodserver.errors import AllocationError

__all__ = ["ALLOCATIONS", "Allocation", "check_place"]


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


ALLOCATIONS: Final[Registry[Allocation]] = Registry("placement policy", AllocationError)
"""Every policy by its name."""


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
