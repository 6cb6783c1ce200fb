"""Fake disks whose every read waits until the test lets it go on."""

import asyncio
import threading

from vodserver.errors import DiskError
from vodserver.scheduling import SCHEDULERS
from vodserver.store.array import DiskArray
from vodserver.store.disks import ExtentKey
from vodserver.store.files import OpenFile
from vodserver.store.reading import ArraySettings, Wanted
from vodserver.store.sums import SUM_SPAN, sums_of

SECONDS = 10.0
"""How long anything may take on a machine that is busy; nothing ever should."""

BIG = 2 * 16 * SUM_SPAN + 100_000
"""An extent that is read in four steps, if its first span is asked for."""


class GatedDisk:
    """A disk whose reads wait for `let`, or not at all after `open`; `entered` counts them."""

    def __init__(self, path, films, *, paged=True, is_open=False):
        self.path = path
        self.paged = paged
        self.films = films
        self.is_open = is_open
        self.faults = set()
        self.log = []
        self.overlapped = False
        self.closed = 0
        self.at_gate = False
        self._inside = threading.Lock()
        self._entered = threading.Semaphore(0)
        self._gate = threading.Semaphore(0)

    def read(self, extent: ExtentKey, offset, length, *, direct=False):
        if not self._inside.acquire(blocking=False):
            self.overlapped = True
        try:
            self.log.append((extent, offset, length, direct))
            self._entered.release()
            if not self.is_open:
                self.at_gate = True
                self._gate.acquire(timeout=SECONDS)
                self.at_gate = False
            if extent in self.faults:
                raise DiskError("I/O error")
            data = self.films[extent][offset : offset + length]
            if len(data) < length:
                raise DiskError("it is shorter")
            return memoryview(data)
        finally:
            self._inside.release()

    def file(self, extent: ExtentKey):
        try:
            return OpenFile(self.path)
        except OSError as error:
            raise DiskError("cannot open it") from error

    def peek(self, extent, offset, length):
        return None

    def close(self):
        self.closed += 1

    def let(self, reads=1):
        """Let so many reads go on."""
        self.at_gate = False
        for _ in range(reads):
            self._gate.release()

    def open(self):
        """Let all reads go on from now on."""
        self.is_open = True
        self.let()

    async def entered(self, reads=1):
        """Wait until so many more reads have begun."""
        for _ in range(reads):
            assert await asyncio.to_thread(self._entered.acquire, timeout=SECONDS)


class Rig:
    """An array of gated disks, and all that it told."""

    def __init__(self, folder, *, disks=2, scheduler="shortest-queue", paged=True, **settings):
        self.folder = folder
        self.paged = paged
        self.films: dict[ExtentKey, bytes] = {}
        self.sums: dict[ExtentKey, bytes] = {}
        for number, size in enumerate((BIG, 3 * SUM_SPAN + 17, 5)):
            data = bytes((number + at // SUM_SPAN) % 256 for at in range(0, size, SUM_SPAN))
            whole = b"".join(bytes([byte]) * SUM_SPAN for byte in data)[:size]
            self.films["t", number] = whole
            self.sums["t", number] = sums_of(whole)
        self.file = folder / "any"
        self.file.write_bytes(b"x")
        self.disks = {number: self.make() for number in range(disks)}
        self.begun = []
        self.learned = []
        self.faults = []
        settings.setdefault("stall_seconds", 1000.0)
        settings.setdefault("read_timeout_seconds", SECONDS)
        self.array = DiskArray(
            self.disks,
            SCHEDULERS.create(scheduler, disks=tuple(self.disks)),
            ArraySettings(**settings),
            begin=lambda key, disk: self.begun.append((key, disk)),
            learn=lambda key, disk, low, high, file: self.learned.append((key, disk, low, high)),
            fault=lambda key, disk, fault: self.faults.append((key, disk, fault)),
        )

    def make(self):
        return GatedDisk(self.file, self.films, paged=self.paged)

    def attach(self, number):
        self.disks[number] = self.make()
        self.array.attach(number, self.disks[number])

    def wanted(self, number=0, begin=0, stop=1, **flags):
        key = ("t", number)
        return Wanted(key, len(self.films[key]), self.sums[key], begin, stop, **flags)

    def ask(self, number=0, begin=0, stop=1, *, disks=None, **flags):
        """Begin a read in a task of its own."""
        wanted = self.wanted(number, begin, stop, **flags)
        asked = tuple(self.disks) if disks is None else disks
        return asyncio.create_task(self.array.read(wanted, asked))

    def right(self, wanted):
        return self.films[wanted.extent][wanted.low : wanted.high]

    def rest(self):
        """What is left in the tables; all empty at rest."""
        return (
            self.array._reads,
            self.array._by_extent,
            self.array._parked,
            [slot.number for slot in self.array._slots.values() if slot.running is not None],
            [s.queued_reads for s in self.array.statistics().values() if s.queued_reads],
        )

    def stall(self, number):
        """Have the watchdog find that a disk's read brought nothing for long."""
        slot = self.array._slots[number]
        read = slot.running
        read.heard -= 2000.0
        read.watchdog.cancel()
        self.array._watch(slot, read)

    async def settle(self):
        """Let everybody do what there is to do, and see that nothing is left over."""
        for disk in self.disks.values():
            disk.open()
        self.array._recover()  # as the next read does, if a loop ended
        async with asyncio.timeout(SECONDS):
            while any(self.rest()):  # noqa: ASYNC110 - threads set no event of ours
                await asyncio.sleep(0.001)

    def close(self):
        for disk in self.disks.values():
            disk.open()
        self.array.close()


async def ticks(count=3):
    """Let tasks that were just made, or woken, run."""
    for _ in range(count):
        await asyncio.sleep(0)


ALL = BIG
MIDDLE = 20 * SUM_SPAN


def log(rig, number):
    """What a disk of a rig was asked for: offsets and lengths."""
    return [(offset, length) for _, offset, length, _ in rig.disks[number].log]
