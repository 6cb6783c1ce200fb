"""Disks: every read of an extent that the server makes goes through one of these."""

import asyncio
import os
import queue
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from vodserver.errors import DiskError
from vodserver.store.layout import extent_path

__all__ = ["Disk", "DiskStatistics", "ExtentKey", "RealDisk"]

_OPEN_FILES: Final = 128
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)

ExtentKey = tuple[str, int]
"""An extent on a disk: the folder of its title and its number."""


@dataclass(frozen=True, slots=True)
class DiskStatistics:
    """What a disk did since it was opened.

    Attributes:
        queued_bytes: what it was asked for and has not read yet.
        resident_reads: reads that were answered from memory and cost the disk nothing.
        disk_reads: reads that its thread had to make.
        failed_reads: reads that failed.
        read_bytes: bytes returned, from memory and from the disk.
    """

    queued_bytes: int
    resident_reads: int
    disk_reads: int
    failed_reads: int
    read_bytes: int


class Disk(Protocol):
    """One disk of the store, real, emulated or faulty."""

    @property
    def queued_bytes(self) -> int:
        """What it was asked for and has not read yet."""
        ...

    async def read(self, extent: ExtentKey, offset: int, length: int) -> memoryview:
        """Read a part of an extent.

        Returns:
            Exactly `length` bytes, unverified.

        Raises:
            DiskError: the extent is missing or shorter, or the disk failed.
        """
        ...

    def statistics(self) -> DiskStatistics:
        """What it did since it was opened."""
        ...

    def close(self) -> None:
        """Stop; reads that wait fail with DiskError."""
        ...


class _OpenFile:
    """A descriptor that closes itself when neither the cache nor a read holds it any more."""

    __slots__ = ("fd",)

    def __init__(self, path: Path) -> None:
        self.fd = -1
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def is_gone(self) -> bool:
        """Whether the file was removed or replaced since: what is open is then no replica."""
        return os.fstat(self.fd).st_nlink == 0

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


@dataclass(slots=True)
class _Job:
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[memoryview]"
    extent: ExtentKey
    offset: int
    length: int
    begun: bool = False
    """The thread is at it: from here it loads the disk even if nobody waits for it any more."""
    queued: bool = True
    """It counts in the disk's queue."""


class RealDisk:
    """A directory on a disk, read by one thread: one read at a time, in the order of asking.

    A disk that is asked for two things at once seeks between them, so it is not. What the kernel
    already has in memory is read at once, without the thread (preadv2(2), RWF_NOWAIT), and does
    not count in the queue: it is no load on the disk.

    Args:
        path: the disk's directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: OrderedDict[ExtentKey, _OpenFile] = OrderedDict()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._queued = 0
        self._resident = 0
        self._from_disk = 0
        self._failed = 0
        self._bytes = 0
        self._closed = False
        self._files_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def queued_bytes(self) -> int:
        """What the thread was asked for and has not read yet."""
        return self._queued

    def statistics(self) -> DiskStatistics:
        """What it did since it was opened."""
        return DiskStatistics(
            self._queued, self._resident, self._from_disk, self._failed, self._bytes
        )

    async def read(self, extent: ExtentKey, offset: int, length: int) -> memoryview:
        """Read a part of an extent; see `Disk.read`."""
        if self._closed:
            raise DiskError(f"the disk {self.path} is closed")
        found = self._resident_read(extent, offset, length)
        if found is not None:
            self._resident += 1
            self._bytes += length
            return found
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), extent, offset, length)
        self._queued += length
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="disk reader", daemon=True)
            self._thread.start()
        self._jobs.put(job)
        try:
            data = await job.done
        except DiskError:
            self._failed += 1
            raise
        except asyncio.CancelledError:
            if not job.begun:
                self._leave_queue(job)
            raise
        self._from_disk += 1
        self._bytes += length
        return data

    def close(self) -> None:
        """Stop the thread after the read that it is in; the reads behind it fail."""
        self._closed = True
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        with self._files_lock:
            self._files.clear()

    def _resident_read(self, extent: ExtentKey, offset: int, length: int) -> memoryview | None:
        """The bytes if all of them are in memory now; None if the disk has to be asked."""
        with self._files_lock:
            file = self._files.get(extent)
        # Opening may touch the disk: only the thread does it, and only then are we quick here.
        if file is None or not _NOWAIT:
            return None
        buffer = bytearray(length)
        try:
            if file.is_gone():
                return None
            count = os.preadv(file.fd, [buffer], offset, _NOWAIT)
        except OSError:  # not resident, or a fault that the thread will meet and report
            return None
        return memoryview(buffer) if count == length else None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if job.done.cancelled():
                continue
            job.begun = True
            result: memoryview | DiskError
            if self._closed:
                result = DiskError(f"the disk {self.path} is closed")
            else:
                try:
                    result = self._blocking_read(job.extent, job.offset, job.length)
                except DiskError as error:
                    result = error
                except Exception as error:  # noqa: BLE001 - a dead thread would hang every read
                    reason = getattr(error, "strerror", None) or error
                    result = DiskError(f"cannot read from {self.path}: {reason}")
            try:
                job.loop.call_soon_threadsafe(self._settle, job, result)
            except RuntimeError:
                continue  # the loop ended before its read did: nobody waits for it any more

    def _blocking_read(self, extent: ExtentKey, offset: int, length: int) -> memoryview:
        file = self._open(extent)
        buffer = bytearray(length)
        view = memoryview(buffer)
        have = 0
        while have < length:
            count = os.preadv(file.fd, [view[have:]], offset + have)
            if count == 0:
                raise DiskError(f"{extent_path(self.path, *extent)} is shorter than it was written")
            have += count
        return view

    def _open(self, extent: ExtentKey) -> _OpenFile:
        with self._files_lock:
            file = self._files.get(extent)
            if file is not None and not file.is_gone():
                self._files.move_to_end(extent)
                return file
        path = extent_path(self.path, *extent)
        try:
            file = _OpenFile(path)
        except OSError as error:
            raise DiskError(f"cannot open {path}: {error.strerror}") from error
        with self._files_lock:
            self._files[extent] = file
            while len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)
        return file

    def _settle(self, job: _Job, result: memoryview | DiskError) -> None:
        """Tell who waits, in the event loop."""
        self._leave_queue(job)
        if job.done.done():
            return
        if isinstance(result, DiskError):
            job.done.set_exception(result)
        else:
            job.done.set_result(result)

    def _leave_queue(self, job: _Job) -> None:
        if job.queued:
            job.queued = False
            self._queued -= job.length
