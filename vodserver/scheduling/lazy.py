"""Choose the replica when a disk becomes free, not when the request arrives."""

from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, Final

from vodserver.scheduling.base import SCHEDULERS, ReadRequest
from vodserver.scheduling.engine import DiskState, Engine, Waiting
from vodserver.scheduling.service import DEFAULT_ACCESS_SECONDS, DEFAULT_RATE

__all__ = ["Lazy"]

_LOOK: Final = 8
"""Requests are left to another disk only if they are among so many oldest of it: bounds the cost
of a decision, and what can be overtaken at a time."""

_CHOICE: Final = 4
"""A disk chooses among so many that it need not leave; more are looked at for nothing."""

_NEED: Final = 0.5
"""What a second counts that the other disk of a request has to do yet, beside one of waiting. None
would be the order of submission; with more, the mean falls on, but the longest waits grow."""

_CLEARLY: Final = 1.25
"""The other disk must be expected to be done this many times sooner."""


class Lazy(Engine):
    """A request waits for all its disks; the first that becomes free takes one of them.

    So no request waits behind a slow read on one disk while the other is idle, and no estimate is
    needed for that (Sanders, "Asynchronous scheduling of redundant disk arrays", IEEE
    Transactions on Computers 52, 2003).

    Plain lazy scheduling takes the oldest. But a request whose other disk has much to do needs
    this disk more than one whose other disk is nearly idle. So of the four oldest a disk takes
    the one that has waited longest, where half of what its other disk has yet to do counts as
    waiting, too; a request overtakes others by no more than four reads' time.

    What plain lazy scheduling also gets wrong is a disk that is much slower than the other: it is
    idle, takes the request, and is done long after the other would have been. So a disk leaves a
    request to another one that is expected, at the speeds they have shown, to finish it clearly
    sooner, the rest of its present read and what it would take before included, and takes
    one that it need not leave, if any. Only the eight oldest of the other disk count. Each
    request is left to others for no longer than this disk would have taken to read it: whatever
    the others then do, leaving it has cost it no more than that, and none starves. Nothing is left
    by a disk, or to a disk, that has not shown its speed lately.

    Args:
        disks: numbers of the disks that are there.
        access_seconds: t_a assumed of a disk that has not read yet.
        rate: r_d assumed of it, bytes per second.
        plain: always take the oldest, and never leave a request to another disk.
    """

    name: ClassVar[str] = "lazy"

    def __init__(
        self,
        *,
        disks: Iterable[int] = (),
        access_seconds: float = DEFAULT_ACCESS_SECONDS,
        rate: float = DEFAULT_RATE,
        plain: bool = False,
    ) -> None:
        super().__init__(disks=disks, access_seconds=access_seconds, rate=rate)
        self._plain = plain
        self._due: dict[int, float] = {}

    def _queues_for(self, request: ReadRequest, there: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002 - any request
        return there

    def _waits_everywhere(self, request: ReadRequest) -> bool:  # noqa: ARG002 - any request
        return True

    def wake(self, disk: int, now: float) -> float | None:
        """When the first of the requests that an idle disk left to others is due here."""
        state = self._disks.get(disk)
        due = self._due.get(disk)
        if state is None or due is None or state.outstanding or not state.foreground.entries:
            return None
        return max(due, now)

    def _choose(self, disk: int, state: DiskState) -> Waiting | None:
        self._due.pop(disk, None)
        if self._plain:
            return state.foreground.oldest()
        offers, left = self._offers(disk, state)
        if not offers:
            self._due[disk] = min(_due(state, entry) for entry in left)
            return None
        return offers[0] if len(offers) == 1 else self._pick(disk, state, offers)

    def _offers(self, disk: int, state: DiskState) -> tuple[list[Waiting], list[Waiting]]:
        """Among what a disk chooses, oldest first; and what it leaves to others."""
        offers: list[Waiting] = []
        left: list[Waiting] = []
        # It ends soon: what is left stands among the first few of another disk.
        for entry in state.foreground.entries.values():
            if self._leaves(disk, state, entry):
                left.append(entry)
                if entry.passed is None:
                    entry.passed = self._now
                continue
            if len(entry.queues) == 1:
                # Who can be served nowhere else is overtaken by none who came later.
                if not offers:
                    offers.append(entry)
                break
            offers.append(entry)
            if len(offers) == _CHOICE:
                break
        return offers, left

    def _pick(self, disk: int, state: DiskState, offers: list[Waiting]) -> Waiting:
        """The one of two or more that needs this disk most."""
        backlogs: dict[int, float] = {}
        return max(
            offers,
            key=lambda entry: (
                self._now - entry.since + _NEED * self._elsewhere(disk, state, entry, backlogs)
            ),
        )

    def _elsewhere(
        self, disk: int, state: DiskState, entry: Waiting, backlogs: dict[int, float]
    ) -> float:
        """Seconds that the best other disk of a request has to do yet, as far as that counts."""
        for other in entry.queues:
            if other not in backlogs:
                backlogs[other] = self._backlog(self._disks[other])
        most = _LOOK * state.service.seconds(entry.request.size)
        return min(most, *(backlogs[other] for other in entry.queues if other != disk))

    def _backlog(self, state: DiskState) -> float:
        """Seconds that a disk has to do yet, if what can be read elsewhere is shared evenly."""
        queue, model = state.foreground, self._model(state)
        return self._remaining(state) + model.seconds(
            max(queue.share_size, 0.0), max(queue.share_count, 0.0)
        )

    def _leaves(self, disk: int, state: DiskState, entry: Waiting) -> bool:
        """Whether another disk is expected to finish a request clearly sooner than this one."""
        if entry.passed is not None and self._now >= _due(state, entry):
            return False
        if not self._is_known(state):
            return False
        here = state.service.seconds(entry.request.size)
        return any(
            _CLEARLY * self._expected(other, entry) < here
            for other in entry.queues
            if other != disk and self._is_known(self._disks[other])
        )

    def _expected(self, disk: int, entry: Waiting) -> float:
        """Seconds until a disk would have finished a request if it took all before it first."""
        state = self._disks[disk]
        seconds = self._remaining(state)
        for ahead in islice(state.foreground.entries.values(), _LOOK):
            seconds += state.service.seconds(ahead.request.size)
            if ahead is entry:
                return seconds
        return float("inf")


def _due(state: DiskState, entry: Waiting) -> float:
    """When a disk takes a request that it left to others, if they have not by then."""
    assert entry.passed is not None
    return entry.passed + state.service.seconds(entry.request.size)


SCHEDULERS.register(Lazy.name, Lazy)
