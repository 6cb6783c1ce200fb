"""The disks of a store as one: a thread for each, one read at a time, and a scheduler over all.

After Summers (2016, chapter 4; "ASAP"): nothing waits for a disk but its own thread, a disk has at
most one read outstanding, and a read goes on past what was asked for, since the next viewer's
request for the same extent would cost another seek. What is read is verified at once, in that
thread. Whoever waits is answered as soon as its own part is in, not when the whole read is over.
"""

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from vodserver.errors import DiskError
from vodserver.scheduling import DiskLoad, ReadRequest, Scheduler
from vodserver.store.disks import Disk, ExtentKey
from vodserver.store.files import OpenFile
from vodserver.store.reading import ArraySettings, DiskStatistics, Read, Step, Waiter, Wanted
from vodserver.store.sums import SUM_SPAN, matches

__all__ = ["DiskArray"]

_STEP: Final = 16 * SUM_SPAN
"""Read and verified at a time: how soon a waiter in the middle of a long read is answered."""

_CLOSE_SECONDS: Final = 1.0


class _Slot:
    """A disk, its thread, and its counters."""

    def __init__(self, number: int, disk: Disk, work: Callable[["_Slot"], None]) -> None:
        self.number = number
        self.disk = disk
        self.jobs: queue.SimpleQueue[Read | None] = queue.SimpleQueue()
        self.running: Read | None = None
        self.stalled = False
        self.closed = False
        self.wake: asyncio.TimerHandle | None = None
        self.resident_reads = self.resident_bytes = 0
        self.disk_reads = self.failed_reads = self.read_bytes = 0
        self.service_seconds = 0.0
        self.thread = threading.Thread(
            target=work, args=(self,), name=f"disk {number}", daemon=True
        )
        self.thread.start()


class DiskArray:
    """Reads extents from whichever of their disks is best.

    Args:
        disks: by number.
        scheduler: decides which disk reads what, and when.
        settings: how they are read.
        begin: told of every read before its disk is: extent, disk.
        learn: told of every part that came from a paged disk and is right: extent, disk, first
            byte, one past the last, the open replica.
        fault: told of every replica that turned out bad: extent, disk, what is wrong.
    """

    def __init__(
        self,
        disks: Mapping[int, Disk],
        scheduler: Scheduler,
        settings: ArraySettings,
        *,
        begin: Callable[[ExtentKey, int], None],
        learn: Callable[[ExtentKey, int, int, int, OpenFile], None],
        fault: Callable[[ExtentKey, int, str], None],
    ) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._begin = begin
        self._learn = learn
        self._fault = fault
        self._ids = itertools.count()
        self._reads: dict[int, Read] = {}
        self._by_extent: dict[ExtentKey, list[Read]] = {}
        self._parked: list[Read] = []
        self._slots: dict[int, _Slot] = {}
        for number, disk in disks.items():
            self._slots[number] = _Slot(number, disk, self._work)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The disks that are there."""
        return tuple(self._slots)

    def disk(self, number: int) -> Disk | None:
        """One of the disks; None if it is not there."""
        slot = self._slots.get(number)
        return None if slot is None else slot.disk

    async def read(self, wanted: Wanted, disks: Iterable[int]) -> tuple[int, memoryview | None]:
        """Have a part of an extent read and verified.

        Args:
            wanted: which part.
            disks: those that may have it, in placement order.

        Returns:
            The disk that it came from; its bytes [low, high) if they were to be kept.

        Raises:
            DiskError: none of the disks has it, or none answered in time.
        """
        asked = tuple(disks)
        if not self._there(asked):
            raise DiskError("none of its disks is there")
        self._recover()
        waiter = Waiter(wanted, asked, asyncio.get_running_loop().create_future())
        self._place(waiter, asked)
        try:
            async with asyncio.timeout(self._settings.read_timeout_seconds):
                return await waiter.done
        except TimeoutError:
            seconds = self._settings.read_timeout_seconds
            raise DiskError(f"no disk answered within {seconds:g} s") from None
        finally:
            self._leave(waiter)
            if waiter.done.done() and not waiter.done.cancelled():
                waiter.done.exception()  # whoever was cancelled meanwhile does not want to know

    def attach(self, number: int, disk: Disk) -> None:
        """Take in a disk, new or returned, in place of one of this number that may be there."""
        self.detach(number)
        self._slots[number] = _Slot(number, disk, self._work)
        self._scheduler.join(number)
        self._resume(number)
        self._dispatch_all()

    def detach(self, number: int) -> None:
        """Let a disk go: what waits for it goes to others, or fails."""
        self._recover()
        slot = self._slots.pop(number, None)
        if slot is None:
            return
        self._end(slot)
        orphans = [self._reads[request.id] for request in self._scheduler.withdraw(number)]
        parked = [read for read in self._parked if not self._there(read.disks)]
        for read in (*orphans, *parked):
            self._forget(read)
            self._move_waiters(read, f"disk {number} is not there any more")
        if slot.running is not None:
            # Those who have no other disk may yet get what it is just reading.
            self._move_waiters(slot.running)
        self._dispatch_all()

    def note_resident(self, disk: int, size: int, *, parts: int = 1) -> None:
        """Count parts that were sent from memory."""
        slot = self._slots.get(disk)
        if slot is not None:
            slot.resident_reads += parts
            slot.resident_bytes += size

    def load(self, number: int) -> DiskLoad | None:
        """What a disk has to do; None if it is not there or does not answer."""
        slot = self._slots.get(number)
        return None if slot is None or slot.stalled else self._scheduler.load(number, _now())

    def statistics(self) -> dict[int, DiskStatistics]:
        """What each disk did and has to do."""
        return {number: self._statistics(slot) for number, slot in self._slots.items()}

    def close(self) -> None:
        """End the threads after the step that each is in; reads that wait fail."""
        for read in list(self._reads.values()):
            for waiter in read.waiters:
                if not waiter.done.done() and not read.loop.is_closed():
                    waiter.done.set_exception(DiskError("the store is closed"))
        self._reads.clear()
        self._by_extent.clear()
        self._parked.clear()
        slots, self._slots = self._slots, {}
        for slot in slots.values():
            self._end(slot)
            if slot.running is not None and slot.running.watchdog is not None:
                slot.running.watchdog.cancel()
        deadline = _now() + _CLOSE_SECONDS
        for slot in slots.values():
            # A disk that hangs keeps its thread; the thread is a daemon and ends with us.
            slot.thread.join(max(deadline - _now(), 0.0))

    # --- who waits for what

    def _place(self, waiter: Waiter, disks: tuple[int, ...]) -> None:
        """Have a waiter wait for a read that is coming anyway, or for a new one."""
        wanted = waiter.wanted
        for read in self._by_extent.get(wanted.extent, ()):
            if self._may_join(read, disks) and _covers(read, wanted):
                if read.reached >= wanted.high and read.disk is not None:
                    waiter.done.set_result((read.disk, None))
                else:
                    read.waiters.append(waiter)
                    read.keep = read.keep or wanted.keep
                return
        high = wanted.high
        if not wanted.background:
            ahead = self._settings.prefetch_bytes
            high = wanted.size if ahead is None else min(high + ahead, wanted.size)
            high = min(-(-high // SUM_SPAN) * SUM_SPAN, wanted.size)
        loop = asyncio.get_running_loop()
        read = Read(next(self._ids), wanted, high, disks, [waiter], loop, wanted.low)
        read.keep = wanted.keep
        self._reads[read.id] = read
        self._by_extent.setdefault(wanted.extent, []).append(read)
        self._submit(read)

    def _may_join(self, read: Read, disks: tuple[int, ...]) -> bool:
        """Whether a read is from these disks only, and no worse off than a new one."""
        if read.disk is None:
            return set(self._ready(disks)) <= set(read.disks) <= set(disks)
        slot = self._slots.get(read.disk)
        return (
            read.disk in disks
            and slot is not None
            and slot.running is read
            and (not slot.stalled or len(disks) == 1)
        )

    def _submit(self, read: Read) -> None:
        ready = self._ready(read.disks)
        if not ready:
            self._parked.append(read)  # a stalled disk may yet come back in time
            return
        size = read.high - read.wanted.low
        background = read.wanted.background
        # Of all its disks: one that is stalled may take it when it comes to.
        self._scheduler.submit(ReadRequest(read.id, read.disks, size, background), _now())
        # Placement order is random: of several idle disks no number is favoured.
        for number in ready:
            self._dispatch(self._slots[number])

    def _leave(self, waiter: Waiter) -> None:
        """A waiter is answered, or waits no longer."""
        for read in self._by_extent.get(waiter.wanted.extent, ()):
            if waiter in read.waiters:
                read.waiters.remove(waiter)
                if not read.waiters and read.disk is None:
                    self._scheduler.cancel(read.id)
                    self._forget(read)
                return

    def _forget(self, read: Read) -> None:
        self._reads.pop(read.id, None)
        if read in self._parked:
            self._parked.remove(read)
        others = self._by_extent.get(read.wanted.extent)
        if others is not None and read in others:
            others.remove(read)
            if not others:
                del self._by_extent[read.wanted.extent]

    def _move_waiters(self, read: Read, fault: str = "", *, hangs: bool = False) -> None:
        """Have those who wait for a read served by other disks that may have what they want.

        Args:
            read: failed, lost its disk, or hangs.
            fault: told to those who have no other disk; if empty, they go on waiting.
            hangs: other disks that hang as well are no better.
        """
        waiting = [waiter for waiter in read.waiters if not waiter.done.done()]
        read.waiters = []
        for waiter in waiting:
            there = self._there(waiter.disks)
            if self._ready(there) if hangs else there:
                waiter.parts.clear()
                self._place(waiter, waiter.disks)
            elif fault:
                waiter.done.set_exception(DiskError(fault))
            else:
                read.waiters.append(waiter)

    # --- the disks

    def _dispatch_all(self) -> None:
        for slot in tuple(self._slots.values()):
            self._dispatch(slot)

    def _dispatch(self, slot: _Slot) -> None:
        if slot.running is not None or slot.stalled:
            return
        now = _now()
        request = self._scheduler.next(slot.number, now)
        if request is None:
            self._wake_later(slot, now)
            return
        read = self._reads[request.id]
        read.disk = slot.number
        read.began = read.heard = now
        slot.running = read
        read.watchdog = read.loop.call_later(self._settings.stall_seconds, self._watch, slot, read)
        self._begin(read.wanted.extent, slot.number)
        slot.jobs.put(read)

    def _wake_later(self, slot: _Slot, now: float) -> None:
        """A policy may leave a disk idle, for a time."""
        if slot.wake is not None:
            slot.wake.cancel()
            slot.wake = None
        due = self._scheduler.wake(slot.number, now)
        if due is not None:
            loop = asyncio.get_running_loop()
            slot.wake = loop.call_later(max(due - now, 0.0), self._dispatch, slot)

    def _watch(self, slot: _Slot, read: Read) -> None:
        """See whether the read that a disk is at goes on."""
        if slot.running is not read or self._slots.get(slot.number) is not slot:
            return
        quiet = _now() - read.heard
        limit = self._settings.stall_seconds
        if quiet < limit:
            read.watchdog = read.loop.call_later(limit - quiet, self._watch, slot, read)
            return
        slot.stalled = True
        for request in self._scheduler.withdraw(slot.number):
            self._parked.append(self._reads[request.id])
        self._move_waiters(read, hangs=True)
        self._dispatch_all()

    def _work(self, slot: _Slot) -> None:
        """The life of a disk's thread."""
        while (read := slot.jobs.get()) is not None:
            fault = ""
            try:
                self._read_steps(slot, read)
            except DiskError as error:
                fault = str(error)
            except Exception as error:  # noqa: BLE001 - a dead thread would hang every read
                fault = f"cannot read from {slot.disk.path}: {error}"
            self._post(read, self._finished, slot, read, fault)
        slot.disk.close()

    def _read_steps(self, slot: _Slot, read: Read) -> None:
        wanted, disk, at = read.wanted, slot.disk, read.wanted.low
        file = disk.file(wanted.extent) if disk.paged else None
        stop = wanted.high
        while at < read.high:
            if slot.closed:
                raise DiskError(f"the disk {disk.path} is closed")
            stop = min(stop, at + 4 * _STEP)
            data = disk.read(wanted.extent, at, stop - at, direct=wanted.direct)
            if not matches(data, at, wanted.sums):
                raise DiskError("its checksum does not match")
            kept = bytes(data) if read.keep else None
            self._post(read, self._progress, slot, read, Step(at, stop, kept, file))
            at, stop = stop, min(stop + _STEP, read.high) if stop >= wanted.high else wanted.high

    def _post(self, read: Read, call: Callable[..., None], *arguments: object) -> None:
        try:
            read.loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            return  # the loop ended before its read did: nobody waits for it any more

    def _progress(self, slot: _Slot, read: Read, step: Step) -> None:
        read.reached, read.heard = step.high, _now()
        slot.read_bytes += step.high - step.low
        is_there = self._slots.get(slot.number) is slot
        if step.file is not None and not read.wanted.direct and is_there:
            self._learn(read.wanted.extent, slot.number, step.low, step.high, step.file)
        for waiter in read.waiters:
            wanted = waiter.wanted
            if waiter.done.done() or wanted.low >= step.high:
                continue
            if step.kept is not None and wanted.keep:
                cut = slice(max(wanted.low - step.low, 0), wanted.high - step.low)
                waiter.parts.append(step.kept[cut])
            if wanted.high <= step.high:
                data = memoryview(b"".join(waiter.parts)) if waiter.parts else None
                waiter.done.set_result((slot.number, data))

    def _finished(self, slot: _Slot, read: Read, fault: str) -> None:
        now = _now()
        if read.watchdog is not None:
            read.watchdog.cancel()
        slot.running = None
        slot.disk_reads += 1
        slot.failed_reads += bool(fault)
        slot.service_seconds += now - read.began
        self._forget(read)
        if self._slots.get(slot.number) is slot:
            self._scheduler.finish(slot.number, now, learn=not fault)
            if slot.stalled:
                slot.stalled = False
                self._scheduler.join(slot.number)
                self._resume(slot.number)
            if fault:
                for waiter in read.waiters:
                    waiter.disks = tuple(n for n in waiter.disks if n != slot.number)
                self._fault(read.wanted.extent, slot.number, fault)
        if fault:
            self._move_waiters(read, fault)
        self._dispatch_all()

    def _resume(self, number: int) -> None:
        """A disk answers again: what only it has, and who waits for others that do not, is next."""
        self._submit_parked()
        for slot in tuple(self._slots.values()):
            if slot.stalled and slot.running is not None:
                read = slot.running
                stuck = [waiter for waiter in read.waiters if number in waiter.disks]
                read.waiters = [waiter for waiter in read.waiters if waiter not in stuck]
                for waiter in stuck:
                    waiter.parts.clear()
                    self._place(waiter, (number,))

    def _recover(self) -> None:
        """Free the disks whose last read belonged to an event loop that has ended."""
        left = [read for read in self._reads.values() if read.loop.is_closed()]
        if not left:
            return
        for read in left:
            self._scheduler.cancel(read.id)
            self._forget(read)
        for slot in self._slots.values():
            if slot.running in left:
                slot.running = None
                self._scheduler.finish(slot.number, _now(), learn=False)
                if slot.stalled:  # it may still hang; the next read will tell
                    slot.stalled = False
                    self._scheduler.join(slot.number)
        self._submit_parked()
        self._dispatch_all()

    def _submit_parked(self) -> None:
        parked, self._parked = self._parked, []
        for read in parked:
            self._submit(read)

    def _there(self, disks: Iterable[int]) -> tuple[int, ...]:
        return tuple(number for number in disks if number in self._slots)

    def _ready(self, disks: Iterable[int]) -> tuple[int, ...]:
        """Those of some disks that are there and answer."""
        return tuple(n for n in self._there(disks) if not self._slots[n].stalled)

    def _end(self, slot: _Slot) -> None:
        slot.closed = True
        if slot.wake is not None:
            slot.wake.cancel()
        slot.jobs.put(None)

    def _statistics(self, slot: _Slot) -> DiskStatistics:
        load = None if slot.stalled else self._scheduler.load(slot.number, _now())
        busy = 0.0 if slot.running is None else _now() - slot.running.began
        return DiskStatistics(
            queued_reads=load.waiting if load else 0,
            queued_bytes=load.waiting_bytes if load else 0,
            busy_seconds=busy,
            expected_delay_seconds=load.expected_delay if load else busy,
            access_seconds=load.access_seconds if load else 0.0,
            rate=load.rate if load else 0.0,
            resident_reads=slot.resident_reads,
            resident_bytes=slot.resident_bytes,
            disk_reads=slot.disk_reads,
            failed_reads=slot.failed_reads,
            read_bytes=slot.read_bytes,
            service_seconds=slot.service_seconds,
            stalled=slot.stalled,
        )


def _covers(read: Read, wanted: Wanted) -> bool:
    """Whether somebody who wants this part may wait for a read that is coming anyway."""
    return (
        not (wanted.direct or read.wanted.direct)
        and read.wanted.low <= wanted.low
        and wanted.high <= read.high
        and read.loop is asyncio.get_running_loop()
        # Nobody who watches waits for a read that itself waits for everybody.
        and (wanted.background or not read.wanted.background)
        # What was read already is in memory, but its bytes are not here any more.
        and (not wanted.keep or ((read.disk is None or read.keep) and read.reached <= wanted.low))
    )


def _now() -> float:
    return time.monotonic()
