"""What reading from the disks is about: settings, what is wanted, who waits, what was done."""

import asyncio
from dataclasses import dataclass, field

from vodserver.store.disks import ExtentKey
from vodserver.store.files import OpenFile
from vodserver.store.sums import SUM_SPAN

__all__ = ["ArraySettings", "DiskStatistics", "Read", "Step", "Waiter", "Wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySettings:
    """How the disks are read."""

    prefetch_bytes: int | None = None
    """On a miss, read on so far past what was asked for; None: to the extent's end."""

    stall_seconds: float = 0.5
    """A read that brings nothing for so long has the others ask elsewhere, where they can."""

    read_timeout_seconds: float = 10.0
    """Far beyond any queue that serves viewers in time, and short of what makes players give up."""


@dataclass(frozen=True, slots=True)
class DiskStatistics:
    """What a disk did since it was opened, and what it has to do.

    Attributes:
        queued_reads: reads that wait for it.
        queued_bytes: bytes of those.
        busy_seconds: how long the read that it is at has lasted.
        expected_delay_seconds: how long a read that is asked for now would take.
        access_seconds: learned mean access time.
        rate: learned transfer rate, bytes per second.
        resident_reads: parts sent from memory; they cost the disk nothing.
        resident_bytes: bytes of those.
        disk_reads: reads that it made.
        failed_reads: reads that failed.
        read_bytes: bytes that it read, prefetch included.
        service_seconds: seconds that it spent reading.
        stalled: whether its present read brings nothing.
    """

    queued_reads: int
    queued_bytes: int
    busy_seconds: float
    expected_delay_seconds: float
    access_seconds: float
    rate: float
    resident_reads: int
    resident_bytes: int
    disk_reads: int
    failed_reads: int
    read_bytes: int
    service_seconds: float
    stalled: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """A part of an extent that somebody wants read.

    Attributes:
        extent: the extent.
        size: its bytes.
        sums: its checksums.
        begin: first byte.
        stop: one past the last.
        background: nobody watches it: it waits for all who do.
        direct: from the disk itself, whatever is in memory.
        keep: the bytes are wanted, not only that they are in memory.
    """

    extent: ExtentKey
    size: int
    sums: bytes
    begin: int
    stop: int
    background: bool = False
    direct: bool = False
    keep: bool = False

    @property
    def low(self) -> int:
        """First byte of the checksum spans that it touches."""
        return self.begin // SUM_SPAN * SUM_SPAN

    @property
    def high(self) -> int:
        """One past the last byte of those."""
        return min(-(-self.stop // SUM_SPAN) * SUM_SPAN, self.size)


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits for a part of an extent."""

    wanted: Wanted
    disks: tuple[int, ...]
    """Those that may have it: fewer with each that turns out not to."""

    done: "asyncio.Future[tuple[int, memoryview | None]]"
    parts: list[bytes] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Read:
    """One read, waiting or under way, and who waits for it."""

    id: int
    wanted: Wanted
    high: int
    """Where it ends, prefetch included."""

    disks: tuple[int, ...]
    waiters: list[Waiter]
    loop: asyncio.AbstractEventLoop
    reached: int
    disk: int | None = None
    began: float = 0.0
    heard: float = 0.0
    keep: bool = False
    watchdog: asyncio.TimerHandle | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a read that is in, and right."""

    low: int
    high: int
    kept: bytes | None
    file: OpenFile | None
