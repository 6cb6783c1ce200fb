"""What a replica scheduler is, and the list of those there are."""

from collections.abc import Sequence
from typing import Final, Protocol

from toast.common.registry import Registry
from vodserver.errors import StoreUsageError

__all__ = ["SCHEDULERS", "Scheduler"]


class Scheduler(Protocol):
    """Decides from which of its replicas an extent is read.

    Attributes:
        name: what settings call the policy.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - documented in the class

    def order(self, queued_bytes: Sequence[int]) -> list[int]:
        """Rank the replicas, best first; the later ones are for when the earlier ones fail.

        Args:
            queued_bytes: for each replica, what its disk still has to read.

        Returns:
            A permutation of the replicas' numbers.
        """
        ...


SCHEDULERS: Final[Registry[Scheduler]] = Registry("scheduling policy", StoreUsageError)
"""Every policy by its name."""
