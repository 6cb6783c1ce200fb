"""Open replicas, and what of them the kernel has in memory.

Linux 6.5 and later tell by cachestat(2), older ones by mincore(2), which costs twice as much. Both
tell the truth only to whoever owns the file or may write it.
"""

import ctypes
import errno
import mmap
import os
import threading
from pathlib import Path
from typing import Any, Final

__all__ = ["OpenFile", "read_fully"]

_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)
_PAGE: Final = mmap.PAGESIZE
_MAP_SHARED: Final = 1
_PROT_READ: Final = 1
_CACHESTAT: Final = 451
"""Number of the system call; the same on every architecture."""

_FIRST_BYTES: Final = 16 * 1024
_GROWTH: Final = 4
"""As fast as the kernel lets its own folios grow."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
    ctypes.c_longlong,
]
_libc.munmap.argtypes = _libc.mlock.argtypes = _libc.munlock.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
]
_MAP_FAILED: Final = ctypes.c_void_p(-1).value
_at_once: Final = ctypes.PyDLL(None, use_errno=True)
"""For calls that never wait. Handing the interpreter to another thread meanwhile costs as much as
the call, and that thread, which may be verifying, need not give it back for half a millisecond."""
_at_once.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


class _Scratch(threading.local):
    """What a thread's system calls are given and answer into."""

    def __init__(self) -> None:
        self.both: Any = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 5)()


_scratch: Final = _Scratch()


def _cached_pages(fd: int, begin: int, size: int) -> int | None:
    """Pages of a part of a file that the kernel has; None where it does not tell."""
    span, found = _scratch.both
    span[0], span[1] = begin, size
    if _at_once.syscall(_CACHESTAT, fd, span, found, 0):
        return None
    return int(found[0])


def _has_cachestat() -> bool:
    # Of no file at all: EBADF says that there is such a call, anything else that there is not.
    return _cached_pages(-1, 0, 0) is None and ctypes.get_errno() == errno.EBADF


_ASK_CACHESTAT: Final = _has_cachestat()


class OpenFile:
    """A replica that is open for reading; closes itself when nobody holds it any more.

    Args:
        path: the file.

    Attributes:
        fd: its descriptor.
        size: its bytes, when it was opened.
        opened_stamp: what `stamp` said then.
        held: all of it stays in memory, see `hold`.

    Raises:
        OSError: it cannot be opened.
    """

    __slots__ = ("_address", "_told_truth", "fd", "held", "opened_stamp", "size")

    def __init__(self, path: Path) -> None:
        self.fd = -1
        self.held = False
        self._address: int | None = None
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        # Else what is sent would have the kernel read on, and bring in what nobody verifies.
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_RANDOM)
        found = os.fstat(self.fd)
        self.size = found.st_size
        self.opened_stamp = found.st_ctime_ns
        self._told_truth = os.geteuid() in {found.st_uid, 0}
        if self.size and self._told_truth and not _ASK_CACHESTAT:
            self._map()

    def reopen(self) -> int:
        """A descriptor of the very same file, for reading it from front to back."""
        try:
            # By its name it may be another file by now.
            return os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return os.dup(self.fd)

    def is_gone(self) -> bool:
        """Whether the file was removed, replaced, cut or written to since it was opened.

        What is open is then no replica, or not the one whose bytes were verified.
        """
        return self.stamp() != self.opened_stamp

    def stamp(self) -> int | None:
        """When it was changed last, by content or by name, in nanoseconds; None if it is gone."""
        found = os.fstat(self.fd)
        return found.st_ctime_ns if found.st_nlink else None

    def hold(self) -> bool:
        """Keep all of the file in memory (mlock(2)), if it is there now; whether it is kept.

        The kernel then takes nothing of it away, so that nothing needs to be asked any more. A
        page that is written to by others changes nevertheless: see `stamp`.

        Raises:
            OSError: this process may not keep so much.
        """
        if not self.held and self.in_memory(0, self.size):
            if self._address is None:
                self._map()
            if self._address is None or _libc.mlock(self._address, self.size):
                raise OSError(ctypes.get_errno(), "cannot be kept in memory")
            self.held = True
        return self.held

    def let_go(self) -> None:
        """Keep it in memory no longer."""
        if self.held:
            self.held = False
            _libc.munlock(self._address, self.size)

    def _map(self) -> None:
        address = _libc.mmap(None, self.size, _PROT_READ, _MAP_SHARED, self.fd, 0)
        if address != _MAP_FAILED:
            self._address = address

    def in_memory(self, begin: int, stop: int) -> bool:
        """Whether bytes [begin, stop) can be read without waiting for the disk; never blocks.

        False also where that cannot be known.
        """
        if self.held:
            return stop <= self.size
        if not self._told_truth or stop > self.size:
            return False
        first = begin - begin % _PAGE
        if _ASK_CACHESTAT:
            return (
                _cached_pages(self.fd, first, stop - first) == (stop - first + _PAGE - 1) // _PAGE
            )
        if self._address is None:
            return False
        vector = ctypes.create_string_buffer(-(-(stop - first) // _PAGE))
        if _at_once.mincore(self._address + first, stop - first, vector):
            return False
        return b"\0" not in vector.raw

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


def read_fully(fd: int, into: memoryview, offset: int, enough: int, *, begins: bool = False) -> int:
    """Read until there is enough or the file ends; how many bytes.

    Where a file ends within a page, going on would be a read at an odd offset, which a disk that
    is read directly refuses.

    Args:
        fd: a file.
        into: where to, `enough` bytes or more.
        offset: where in the file to begin.
        enough: how many bytes are wanted.
        begins: the first read here, of a file that the kernel may read ahead. It then begins with
            little and asks for ever more. Linux (mm/readahead.c) keeps what it reads in folios
            that grow with each step of a sequence, from one page; all that is asked for in one
            call it keeps in single pages, and looking at these and sending them takes longer.

    Raises:
        OSError: the disk failed.
    """
    have, step = 0, _FIRST_BYTES if begins else len(into)
    while have < enough:
        count = os.preadv(fd, [into[have : have + step]], offset + have)
        if count == 0:
            break
        have += count
        step *= _GROWTH
    return have
