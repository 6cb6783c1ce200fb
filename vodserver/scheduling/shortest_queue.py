"""Read the replica whose disk has the least left to read."""

from typing import ClassVar

from vodserver.scheduling.base import SCHEDULERS, ReadRequest
from vodserver.scheduling.engine import DiskState, Engine

__all__ = ["ShortestQueue"]


class ShortestQueue(Engine):
    """The rule of random duplicate assignment (thesis, chapter 4): less queued is sooner done.

    A request joins the disk that has the fewest bytes queued, those it reads now included. Equal
    queues keep the order of the replicas, which placement made random.
    """

    name: ClassVar[str] = "shortest-queue"

    def _queues_for(self, request: ReadRequest, there: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002 - its size is the same everywhere
        return (min(there, key=lambda disk: _queued(self._disks[disk])),)


def _queued(state: DiskState) -> int:
    return state.foreground.size + (state.outstanding.size if state.outstanding else 0)


SCHEDULERS.register(ShortestQueue.name, ShortestQueue)
