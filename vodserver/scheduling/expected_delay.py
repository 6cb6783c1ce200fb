"""Read the replica that is expected to be there first."""

from typing import ClassVar

from vodserver.scheduling.base import SCHEDULERS, ReadRequest
from vodserver.scheduling.engine import Engine

__all__ = ["ExpectedDelay"]


class ExpectedDelay(Engine):
    """A request joins the disk on which it is expected to be done first.

    Expected are: the rest of the read that the disk is at, what waits before it, and the request
    itself, all at the speed that the disk has shown (`ServiceModel`). So a slow disk is given as
    much as it can do, where counting bytes gives it as much as any other. Equal expectations keep
    the order of the replicas.
    """

    name: ClassVar[str] = "expected-delay"

    def _queues_for(self, request: ReadRequest, there: tuple[int, ...]) -> tuple[int, ...]:
        return (min(there, key=lambda disk: self._expected(disk, request)),)

    def _expected(self, disk: int, request: ReadRequest) -> float:
        state = self._disks[disk]
        ahead = state.foreground
        return self._remaining(state) + self._model(state).seconds(
            ahead.size + request.size, len(ahead.entries) + 1
        )


SCHEDULERS.register(ExpectedDelay.name, ExpectedDelay)
