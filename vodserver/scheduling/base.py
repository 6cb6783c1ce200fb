"""What a replica scheduler is, and the list of those there are."""

from collections.abc import Sequence
from typing import Final, Protocol

from vodserver.errors import StoreUsageError

__all__ = ["SCHEDULERS", "Scheduler", "register", "scheduler_named"]


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


SCHEDULERS: Final[dict[str, Scheduler]] = {}
"""Every policy by its name."""


def register(policy: Scheduler) -> None:
    """Make a policy known by its name."""
    SCHEDULERS[policy.name] = policy


def scheduler_named(name: str) -> Scheduler:
    """The policy of this name.

    Raises:
        StoreUsageError: there is none.
    """
    try:
        return SCHEDULERS[name]
    except KeyError:
        known = ", ".join(sorted(SCHEDULERS))
        raise StoreUsageError(f"no scheduling policy '{name}': choose one of {known}") from None
