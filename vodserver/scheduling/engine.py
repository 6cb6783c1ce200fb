"""What all schedulers share: the queues, the outstanding reads, disks that come and go."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from vodserver.scheduling.base import DiskLoad, ReadRequest
from vodserver.scheduling.service import DEFAULT_ACCESS_SECONDS, DEFAULT_RATE, ServiceModel

__all__ = ["DiskState", "Engine", "Queue", "Waiting"]

_KNOWN_READS: Final = 4
_FRESH_SECONDS: Final = 30.0
"""So long after its last read a disk may have recovered: it is given something to show it."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits.

    Attributes:
        request: the request.
        number: of its submission; older is smaller.
        since: when it was submitted.
        queues: disks in whose queue it stands: one, or all that could serve it.
        passed: when a disk first left it to a faster one; None if none has.
    """

    request: ReadRequest
    number: int
    since: float = 0.0
    queues: tuple[int, ...] = ()
    passed: float | None = None


class Queue:
    """Requests in the order of their submission, with the sums that decisions need.

    An OrderedDict finds its oldest and forgets any entry in constant time, however many went
    before; a plain dict walks over what was removed from its front.

    Attributes:
        entries: by request id, oldest first.
        size: bytes of all.
        share_count: like their number, but a request in k queues counts 1/k.
        share_size: like `size`, likewise.
    """

    __slots__ = ("entries", "share_count", "share_size", "size")

    def __init__(self) -> None:
        self.entries: OrderedDict[int, Waiting] = OrderedDict()
        self.size = 0
        self.share_count = 0.0
        self.share_size = 0.0

    def add(self, entry: Waiting) -> None:
        """Append an entry, the youngest; its `queues` is set already."""
        request = entry.request
        self.entries[request.id] = entry
        self.size += request.size
        self.share_count += 1 / len(entry.queues)
        self.share_size += request.size / len(entry.queues)

    def remove(self, entry: Waiting) -> None:
        """Forget an entry that stands here."""
        request = entry.request
        del self.entries[request.id]
        self.size -= request.size
        self.share_count -= 1 / len(entry.queues)
        self.share_size -= request.size / len(entry.queues)
        if not self.entries:  # rounding must not add up over days
            self.share_count = self.share_size = 0.0

    def oldest(self) -> Waiting | None:
        """The oldest entry."""
        return next(iter(self.entries.values()), None)

    def rebuild(self, entries: Iterable[Waiting]) -> None:
        """Replace the content by these, in the order of their submission."""
        ordered = sorted(entries, key=lambda entry: entry.number)
        self.entries.clear()
        self.size, self.share_count, self.share_size = 0, 0.0, 0.0
        for entry in ordered:
            self.add(entry)


@dataclass(slots=True, eq=False)
class DiskState:
    """A disk that is there.

    Attributes:
        service: what is known of its speed.
        outstanding: what it reads now.
        started: since when.
        learned: when the last read that taught something ended.
        foreground: what may be served here.
        background: what may be served here while nobody waits.
    """

    service: ServiceModel
    outstanding: ReadRequest | None = None
    started: float = 0.0
    learned: float = 0.0
    foreground: Queue = field(default_factory=Queue)
    background: Queue = field(default_factory=Queue)

    def queue_of(self, request: ReadRequest) -> Queue:
        """The queue of a request's class."""
        return self.background if request.background else self.foreground


class Engine(ABC):
    """A scheduler but for two decisions: in which queues a request waits, and who is next.

    Background requests of every policy wait in the queues of all their disks: whichever has
    nothing better to do takes them.

    A disk of which little is known, or nothing of late, is taken for one like all the others:
    else a disk that was slow once, or never tried, would be given no read to show its speed.

    Args:
        disks: numbers of the disks that are there.
        access_seconds: t_a assumed of a disk that has not read yet.
        rate: r_d assumed of it, bytes per second.
    """

    def __init__(
        self,
        *,
        disks: Iterable[int] = (),
        access_seconds: float = DEFAULT_ACCESS_SECONDS,
        rate: float = DEFAULT_RATE,
    ) -> None:
        self._prior = (access_seconds, rate)
        self._common = ServiceModel(access_seconds, rate)
        self._disks: dict[int, DiskState] = {}
        self._waiting: dict[int, Waiting] = {}
        self._submitted = 0
        self._now = 0.0
        for disk in disks:
            self.join(disk)

    @abstractmethod
    def _queues_for(self, request: ReadRequest, there: tuple[int, ...]) -> tuple[int, ...]:
        """In which queues of the disks that are there a foreground request waits; >= 1."""

    def _choose(self, disk: int, state: DiskState) -> Waiting | None:  # noqa: ARG002 - for policies
        """What an idle disk takes from its foreground queue, which is not empty."""
        return state.foreground.oldest()

    def submit(self, request: ReadRequest, now: float) -> None:
        """Take in a request; see `Scheduler.submit`."""
        self._now = now
        if request.id in self._waiting:
            raise ValueError(f"request {request.id} waits already")
        entry = Waiting(request, self._submitted, now)
        if not self._assign(entry):
            raise ValueError(f"none of the disks {request.disks} is there")
        self._submitted += 1
        self._waiting[request.id] = entry
        for disk in entry.queues:
            self._disks[disk].queue_of(request).add(entry)

    def next(self, disk: int, now: float) -> ReadRequest | None:
        """What an idle disk reads now; see `Scheduler.next`."""
        self._now = now
        state = self._disks.get(disk)
        if state is None:
            return None
        if state.outstanding is not None:
            raise ValueError(f"disk {disk} is reading")
        waiting = bool(state.foreground.entries)
        entry = self._choose(disk, state) if waiting else state.background.oldest()
        if entry is None:
            return None
        self._forget(entry)
        state.outstanding = entry.request
        state.started = now
        return entry.request

    def wake(self, disk: int, now: float) -> float | None:  # noqa: ARG002 - for policies that idle
        """No disk idles while requests wait for it; see `Scheduler.wake`."""
        return None

    def finish(self, disk: int, now: float, *, learn: bool = True) -> None:
        """The outstanding read of a disk is over; see `Scheduler.finish`."""
        self._now = now
        state = self._disks.get(disk)
        if state is None or state.outstanding is None:
            return
        if learn:
            seconds = max(now - state.started, 0.0)
            state.service.learn(state.outstanding.size, seconds)
            self._common.learn(state.outstanding.size, seconds)
            state.learned = now
        state.outstanding = None

    def cancel(self, request_id: int) -> bool:
        """A waiting request is wanted no more; see `Scheduler.cancel`."""
        entry = self._waiting.get(request_id)
        if entry is None:
            return False
        self._forget(entry)
        return True

    def withdraw(self, disk: int) -> list[ReadRequest]:
        """A disk is gone; see `Scheduler.withdraw`."""
        state = self._disks.pop(disk, None)
        if state is None:
            return []
        lost = []
        held = [*state.foreground.entries.values(), *state.background.entries.values()]
        for entry in sorted(held, key=lambda entry: entry.number):
            for other in entry.queues:
                if other != disk:
                    self._disks[other].queue_of(entry.request).remove(entry)
            if self._assign(entry):
                for other in entry.queues:
                    self._disks[other].queue_of(entry.request).add(entry)
            else:
                del self._waiting[entry.request.id]
                lost.append(entry.request)
        self._restore_order({other for entry in held for other in entry.queues} - {disk})
        return lost

    def join(self, disk: int) -> None:
        """A disk is there; see `Scheduler.join`. One that is there already stays as it is."""
        if disk in self._disks:
            return
        self._disks[disk] = DiskState(ServiceModel(*self._prior))
        changed: set[int] = set()
        for entry in self._waiting.values():
            if disk in entry.request.disks and self._waits_everywhere(entry.request):
                for other in entry.queues:
                    self._disks[other].queue_of(entry.request).remove(entry)
                self._assign(entry)
                for other in entry.queues:
                    self._disks[other].queue_of(entry.request).add(entry)
                changed.update(entry.queues)
        self._restore_order(changed)

    def load(self, disk: int, now: float) -> DiskLoad:
        """What a disk has to do; see `Scheduler.load`."""
        state = self._disks[disk]
        self._now = now
        service = self._model(state)
        shown = state.service if state.service.reads else self._common
        ahead = state.foreground
        delay = (
            self._remaining(state)
            + service.seconds(max(ahead.share_size, 0.0), max(ahead.share_count, 0.0))
            + service.seconds(service.typical_bytes)
        )
        return DiskLoad(
            waiting=len(ahead.entries) + len(state.background.entries),
            waiting_bytes=ahead.size + state.background.size,
            outstanding=state.outstanding is not None,
            busy_seconds=max(now - state.started, 0.0) if state.outstanding is not None else 0.0,
            expected_delay=delay,
            access_seconds=shown.access_seconds,
            rate=shown.rate,
        )

    def _is_known(self, state: DiskState) -> bool:
        """Whether a disk has shown lately how fast it is."""
        is_fresh = self._now - state.learned <= _FRESH_SECONDS
        return state.service.reads >= _KNOWN_READS and is_fresh

    def _model(self, state: DiskState) -> ServiceModel:
        """What to expect of a disk."""
        return state.service if self._is_known(state) else self._common

    def _remaining(self, state: DiskState) -> float:
        """Expected rest of the outstanding read, seconds; 0 without one."""
        if state.outstanding is None:
            return 0.0
        return self._model(state).remaining(state.outstanding.size, self._now - state.started)

    def _waits_everywhere(self, request: ReadRequest) -> bool:
        """Whether a request waits for whichever of its disks is first."""
        return request.background

    def _assign(self, entry: Waiting) -> bool:
        """Decide in which queues an entry stands; False if no disk can serve it."""
        request = entry.request
        # A disk named twice is still one disk.
        there = tuple(dict.fromkeys(disk for disk in request.disks if disk in self._disks))
        if not there:
            return False
        everywhere = self._waits_everywhere(request)
        entry.queues = there if everywhere else self._queues_for(request, there)
        return True

    def _forget(self, entry: Waiting) -> None:
        del self._waiting[entry.request.id]
        for disk in entry.queues:
            self._disks[disk].queue_of(entry.request).remove(entry)

    def _restore_order(self, disks: Iterable[int]) -> None:
        """Requests that changed queues stand where their age puts them, not at the end."""
        for disk in disks:
            state = self._disks.get(disk)
            if state is not None:
                for queue in (state.foreground, state.background):
                    queue.rebuild(list(queue.entries.values()))
