"""Disks: every read of an extent that the server makes goes through one of these."""

import ctypes
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from vodserver.errors import DiskError
from vodserver.store.layout import extent_path

__all__ = ["Disk", "ExtentKey", "OpenFile", "RealDisk"]

_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)
_DIRECT: Final = getattr(os, "O_DIRECT", 0)
_PAGE: Final = mmap.PAGESIZE
_MAP_SHARED: Final = 1
_PROT_READ: Final = 1

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
    ctypes.c_longlong,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
_MAP_FAILED: Final = ctypes.c_void_p(-1).value

ExtentKey = tuple[str, int]
"""An extent on a disk: the folder of its title and its number."""


class OpenFile:
    """A replica that is open for reading; closes itself when nobody holds it any more.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be opened.
    """

    __slots__ = ("_address", "fd", "size")

    def __init__(self, path: Path) -> None:
        self.fd = -1
        self._address: int | None = None
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        found = os.fstat(self.fd)
        self.size = found.st_size
        # mincore(2) tells the truth only to whoever may write the file or owns it.
        if self.size and (found.st_uid == os.geteuid() or os.geteuid() == 0):
            address = _libc.mmap(None, self.size, _PROT_READ, _MAP_SHARED, self.fd, 0)
            if address != _MAP_FAILED:
                self._address = address

    def is_gone(self) -> bool:
        """Whether the file was removed or replaced since: what is open is then no replica."""
        return os.fstat(self.fd).st_nlink == 0

    def in_memory(self, begin: int, stop: int) -> bool:
        """Whether bytes [begin, stop) can be read without waiting for the disk; never blocks.

        False also where that cannot be known.
        """
        if self._address is None or stop > self.size:
            return False
        first = begin // _PAGE * _PAGE
        pages = -(-(stop - first) // _PAGE)
        vector = ctypes.create_string_buffer(pages)
        if _libc.mincore(self._address + first, stop - first, vector):
            return False
        return b"\0" not in vector.raw[:pages]

    def read_now(self, begin: int, stop: int) -> memoryview | None:
        """Bytes [begin, stop) if they can be had without waiting (preadv2(2), RWF_NOWAIT)."""
        if not _NOWAIT:
            return None
        buffer = bytearray(stop - begin)
        try:
            count = os.preadv(self.fd, [buffer], begin, _NOWAIT)
        except OSError:  # not resident, or a fault that the disk's own thread will meet and report
            return None
        return memoryview(buffer) if count == len(buffer) else None

    def __del__(self) -> None:
        if self._address is not None:
            _libc.munmap(self._address, self.size)
        if self.fd >= 0:
            os.close(self.fd)


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
        self._last = None
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

    def _read_paged(
        self, file: OpenFile, _: ExtentKey, offset: int, length: int
    ) -> tuple[int, memoryview]:
        if len(self._buffer) < length:
            self._buffer = bytearray(length)
        view = memoryview(self._buffer)
        return _fill(file.fd, view[:length], offset), view

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
                    return _fill(fd, view[:wanted], offset), view
            finally:
                os.close(fd)
        os.posix_fadvise(file.fd, offset, length, os.POSIX_FADV_DONTNEED)
        return _fill(file.fd, view[:length], offset), view


def _fill(fd: int, view: memoryview, offset: int) -> int:
    """Read until the view is full or the file ends; how many bytes."""
    have = 0
    while have < len(view):
        count = os.preadv(fd, [view[have:]], offset + have)
        if count == 0:
            break
        have += count
    return have
