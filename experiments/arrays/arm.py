"""The arm of a disk with many reads waiting: which is next, and when it is done. Pure.

A read takes what `read_seconds` says, as everywhere in this laboratory. What goes on where the last
read ended needs no access.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from experiments.arrays.disk import DiskModel, Fault, read_seconds

__all__ = ["LATE_SECONDS", "Arm", "Order", "Request"]

LATE_SECONDS: Final = 0.05
"""A disk that is asked again so soon after its last read was busy all along: what a sleep took
longer than it should is no rest."""


class Order(StrEnum):
    """Which of the reads that wait is next."""

    FIFO = "fifo"
    """The one that came first."""
    ELEVATOR = "elevator"
    """The nearest one further on; past the last, the arm goes back to the first (C-SCAN)."""


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """A read that waits.

    Attributes:
        position: where on the disk it begins, bytes.
        number: which it is, for whoever asked; later ones have greater numbers.
        size: bytes.
        asked: when, seconds.
    """

    position: int
    number: int
    size: int = field(compare=False)
    asked: float = field(compare=False, default=0.0)


class Arm:
    """One disk: one read at a time.

    Args:
        model: what reads take.
        chance: for access times.
        order: of the reads that wait.
        joins: reads that want the same bytes are made once, whether they wait or come meanwhile:
            as the kernel's page cache does for those who read a file at the same time.

    Attributes:
        busy_seconds: how long it has been reading.
        reads: that it made.
    """

    def __init__(
        self,
        model: DiskModel,
        chance: np.random.Generator,
        *,
        order: Order = Order.FIFO,
        joins: bool = False,
    ) -> None:
        self.busy_seconds = 0.0
        self.reads = 0
        self._model = model
        self._chance = chance
        self._order = order
        self._joins = joins
        self._waiting: list[Request] = []  # by position if it is an elevator
        self._running: list[Request] = []
        self._free_at = float("-inf")
        self._head = -1

    @property
    def is_reading(self) -> bool:
        """Whether a read is under way."""
        return bool(self._running)

    def ask(self, request: Request) -> None:
        """A read is wanted."""
        if self._joins and any(_alike(request, other) for other in self._running):
            self._running.append(request)
        elif self._order is Order.ELEVATOR:
            insort(self._waiting, request)
        else:
            self._waiting.append(request)

    def begin(self, now: float, faults: Sequence[Fault] = ()) -> float | None:
        """Begin the next read, if one waits and none is under way.

        Args:
            now: seconds.
            faults: what is wrong with this disk.

        Returns:
            When it will be done; None if there is nothing to begin.
        """
        if self._running or not self._waiting:
            return None
        request = self._waiting.pop(self._choose())
        self._running = [request]
        if self._joins:
            self._running += [other for other in self._waiting if _alike(request, other)]
            self._waiting = [other for other in self._waiting if not _alike(request, other)]
        was_waiting = request.asked <= self._free_at or now - self._free_at < LATE_SECONDS
        begins = self._free_at if was_waiting else now
        chance = float(self._chance.uniform())
        seconds = read_seconds(self._model, faults, request.size, begins, place=0.5, chance=chance)
        if request.position == self._head:
            seconds -= self._model.seconds(0, 0.5, chance)
        self._head = request.position + request.size
        self._free_at = begins + seconds
        self.busy_seconds += seconds
        self.reads += 1
        return self._free_at

    def finish(self) -> list[int]:
        """The read is done: the numbers of those who wanted it."""
        done, self._running = self._running, []
        return [request.number for request in done]

    def _choose(self) -> int:
        if self._order is Order.FIFO:
            return 0
        ahead = (n for n, each in enumerate(self._waiting) if each.position >= self._head)
        return next(ahead, 0)


def _alike(one: Request, other: Request) -> bool:
    return (one.position, one.size) == (other.position, other.size)
