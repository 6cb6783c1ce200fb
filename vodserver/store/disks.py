"""Disks: every read of an extent that the server makes goes through one of these."""

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from vodserver.errors import DiskError
from vodserver.store.files import OpenFile, read_fully
from vodserver.store.layout import extent_path

__all__ = ["Disk", "ExtentKey", "RealDisk"]

_DIRECT: Final = getattr(os, "O_DIRECT", 0)
_PAGE: Final = mmap.PAGESIZE

ExtentKey = tuple[str, int]
"""An extent on a disk: the folder of its title and its number."""


class Disk(Protocol):
    """One disk of the store, real, emulated or faulty.

    All but `peek` is called in the disk's own thread, one call at a time, and may block.

    Attributes:
        path: its directory.
        paged: what it reads is in the kernel's page cache afterwards, under the file that `file`
            opens. False for a disk that is no plain directory: its bytes are copied.
    """

    path: Path
    paged: bool

    def read(
        self, extent: ExtentKey, offset: int, length: int, *, direct: bool = False
    ) -> memoryview:
        """Read a part of an extent.

        Args:
            extent: which.
            offset: first byte.
            length: how many bytes.
            direct: from the disk itself, whatever is in memory.

        Returns:
            Exactly `length` bytes, unverified, valid until the next read.

        Raises:
            DiskError: the extent is missing or shorter, or the disk failed.
        """
        ...

    def file(self, extent: ExtentKey) -> OpenFile:
        """Open the replica of an extent; asked for only of a paged disk.

        Raises:
            DiskError: it cannot be opened.
        """
        ...

    def peek(self, extent: ExtentKey, offset: int, length: int) -> memoryview | None:
        """What a disk that is not paged has in a memory of its own; None if it must read."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class RealDisk:
    """A directory on a disk.

    Args:
        path: the directory.
    """

    paged = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: tuple[ExtentKey, OpenFile] | None = None
        self._reading: int | None = None
        self._reached = -1
        """Where the last read through `_reading` ended."""
        self._buffer = bytearray()
        self._aligned: mmap.mmap | None = None

    def read(
        self, extent: ExtentKey, offset: int, length: int, *, direct: bool = False
    ) -> memoryview:
        """Read a part of an extent; see `Disk.read`."""
        file = self.file(extent)
        try:
            count, view = (self._read_direct if direct else self._read_paged)(
                file, extent, offset, length
            )
        except OSError as error:
            raise DiskError(
                f"cannot read {extent_path(self.path, *extent)}: {error.strerror}"
            ) from error
        if count < length:
            raise DiskError(f"{extent_path(self.path, *extent)} is shorter than it was written")
        return view[:length]

    def file(self, extent: ExtentKey) -> OpenFile:
        """Open the replica of an extent; see `Disk.file`."""
        # What is read next is most often the rest of what was read last.
        if self._last is not None and self._last[0] == extent and not self._last[1].is_gone():
            return self._last[1]
        path = extent_path(self.path, *extent)
        self.close()
        try:
            file = OpenFile(path)
        except OSError as error:
            raise DiskError(f"cannot open {path}: {error.strerror}") from error
        self._last = extent, file
        return file

    def peek(self, extent: ExtentKey, offset: int, length: int) -> memoryview | None:  # noqa: ARG002 - the kernel is this disk's memory
        """Nothing: the kernel is this disk's memory."""
        return None

    def close(self) -> None:
        """Let go of everything."""
        self._last = None
        if self._reading is not None:
            os.close(self._reading)
            self._reading = None

    def _read_paged(
        self, file: OpenFile, _: ExtentKey, offset: int, length: int
    ) -> tuple[int, memoryview]:
        if self._reading is None:
            # What is sent from must have nothing read ahead; a disk without that does half as much.
            self._reading, self._reached = file.reopen(), -1
        if len(self._buffer) < length:
            self._buffer = bytearray(length)
        view = memoryview(self._buffer)
        count = read_fully(
            self._reading, view[:length], offset, length, begins=offset != self._reached
        )
        self._reached = offset + count
        return count, view

    def _read_direct(
        self, file: OpenFile, extent: ExtentKey, offset: int, length: int
    ) -> tuple[int, memoryview]:
        """Past the page cache where the file system can do that, else with that part dropped."""
        wanted = -(-length // _PAGE) * _PAGE
        if self._aligned is None or len(self._aligned) < wanted:
            self._aligned = mmap.mmap(-1, wanted)
        view = memoryview(self._aligned)
        with suppress(OSError):  # EINVAL: no such thing here; other faults come again below
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | _DIRECT
            fd = os.open(extent_path(self.path, *extent), flags)
            try:
                if _DIRECT:
                    return read_fully(fd, view[:wanted], offset, length), view
            finally:
                os.close(fd)
        os.posix_fadvise(file.fd, offset, length, os.POSIX_FADV_DONTNEED)
        return read_fully(file.fd, view[:length], offset, length), view
