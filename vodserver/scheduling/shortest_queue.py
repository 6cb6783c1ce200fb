"""Read the replica whose disk has the least left to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vodserver.scheduling.base import SCHEDULERS

__all__ = ["ShortestQueue"]


@dataclass(frozen=True, slots=True)
class ShortestQueue:
    """The rule of random duplicate assignment (thesis, chapter 4): less queued is sooner done.

    Equal queues keep the order of the replicas, which placement made random.
    """

    name: ClassVar[str] = "shortest-queue"

    def order(self, queued_bytes: Sequence[int]) -> list[int]:
        """Rank by queue, shortest first; see `Scheduler.order`."""
        return sorted(range(len(queued_bytes)), key=queued_bytes.__getitem__)


SCHEDULERS.register(ShortestQueue.name, ShortestQueue)
