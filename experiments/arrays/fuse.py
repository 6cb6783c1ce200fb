"""The kernel's FUSE protocol, as much of it as read-only files in one folder need. Pure.

The kernel writes a request, and is answered with the same number (linux/fuse.h, version 7.31).
"""

import errno
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = ["MOST_BYTES", "Folder", "ReadRequest", "answer", "failure"]

MOST_BYTES: Final = 1 << 20
"""What one read may ask for: 256 pages, the most that the kernel allows."""

_IN: Final = struct.Struct("=IIQQIIIHH")
_OUT: Final = struct.Struct("=IiQ")
_ATTR: Final = struct.Struct("=QQQQQQIIIIIIIIII")
_ENTRY: Final = struct.Struct("=QQQQII")
_ATTR_HEAD: Final = struct.Struct("=QII")
_OPENED: Final = struct.Struct("=QII")
_READ_IN: Final = struct.Struct("=QQI")
_INIT_IN: Final = struct.Struct("=IIII")
_INIT_OUT: Final = struct.Struct("=IIIIHHIIHH32x")
_DIRENT: Final = struct.Struct("=QQII")
_STATFS: Final = struct.Struct("=QQQQQIIII24x")


class _Kind(IntEnum):
    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    OPEN = 14
    READ = 15
    STATFS = 17
    RELEASE = 18
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    INTERRUPT = 36
    BATCH_FORGET = 42


_MINOR: Final = 31
_ASYNC_READ, _PARALLEL_DIROPS, _MAX_PAGES = 1 << 0, 1 << 18, 1 << 22
_DIRECT_IO: Final = 1
_BACKGROUND: Final = 1024
_FOREVER: Final = 1 << 30  # seconds that the kernel need not ask again: nothing changes here
_ROOT: Final = 1
_FIRST: Final = 2


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Bytes of a file are wanted.

    Attributes:
        unique: the request's number.
        file: which of the folder's.
        offset: of the first byte.
        size: bytes that there are, within the file.
    """

    unique: int
    file: int
    offset: int
    size: int


class Folder:
    """Answers everything that the kernel asks but for the bytes.

    Args:
        files: sizes by name; numbered in this order.
        paged: whether the kernel's page cache keeps what was read.
        read_ahead: bytes that the kernel may read ahead; of use only if it is paged.
    """

    def __init__(
        self, files: Mapping[str, int], *, paged: bool = False, read_ahead: int = 0
    ) -> None:
        self._names = {name.encode(): number for number, name in enumerate(files)}
        self._sizes = list(files.values())
        self._paged = paged
        self._read_ahead = read_ahead

    def take(self, message: bytes) -> bytes | ReadRequest | None:
        """What to answer to a request; None if it wants no answer."""
        _, kind, unique, node, *_ = _IN.unpack_from(message)
        body = message[_IN.size :]
        if kind in {_Kind.FORGET, _Kind.BATCH_FORGET, _Kind.INTERRUPT}:
            return None
        if kind == _Kind.READ:
            return self._read(unique, node, body)
        if kind == _Kind.LOOKUP:
            return self._look_up(unique, node, body)
        told = self._told(kind, node, body)
        return failure(unique, errno.ENOSYS) if told is None else answer(unique, told)

    def _told(self, kind: int, node: int, body: bytes) -> bytes | None:
        """What to tell of whatever cannot fail; None if we do not have it."""
        told: bytes | None = None
        if kind == _Kind.INIT:
            told = self._init(body)
        elif kind == _Kind.GETATTR:
            told = _ATTR_HEAD.pack(_FOREVER, 0, 0) + self._attributes(node)
        elif kind == _Kind.OPEN:
            told = _OPENED.pack(0, 0 if self._paged else _DIRECT_IO, 0)
        elif kind == _Kind.OPENDIR:
            told = _OPENED.pack(0, 0, 0)
        elif kind == _Kind.READDIR:
            told = self._entries(body)
        elif kind == _Kind.STATFS:
            told = _STATFS.pack(0, 0, 0, len(self._sizes), 0, 4096, 255, 4096, 0)
        elif kind in {_Kind.RELEASE, _Kind.RELEASEDIR, _Kind.FLUSH}:
            told = b""
        return told

    def _look_up(self, unique: int, node: int, body: bytes) -> bytes:
        number = self._names.get(body.rstrip(b"\0")) if node == _ROOT else None
        if number is None:
            return failure(unique, errno.ENOENT)
        entry = _ENTRY.pack(number + _FIRST, 0, _FOREVER, _FOREVER, 0, 0)
        return answer(unique, entry + self._attributes(number + _FIRST))

    def _init(self, body: bytes) -> bytes:
        major, _, read_ahead, flags = _INIT_IN.unpack_from(body)
        flags &= _ASYNC_READ | _PARALLEL_DIROPS | _MAX_PAGES
        ahead = min(read_ahead, self._read_ahead)
        pages = MOST_BYTES // 4096
        return _INIT_OUT.pack(
            major, _MINOR, ahead, flags, _BACKGROUND, _BACKGROUND, 4096, 1, pages, 0
        )

    def _read(self, unique: int, node: int, body: bytes) -> bytes | ReadRequest:
        _, offset, size = _READ_IN.unpack_from(body)
        number = node - _FIRST
        size = min(size, self._sizes[number] - offset)
        return ReadRequest(unique, number, offset, size) if size > 0 else answer(unique)

    def _attributes(self, node: int) -> bytes:
        if node == _ROOT:
            size, mode, links = 0, stat.S_IFDIR | 0o555, 2
        else:
            size, mode, links = self._sizes[node - _FIRST], stat.S_IFREG | 0o444, 1
        blocks = -(-size // 512)
        return _ATTR.pack(node, size, blocks, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)

    def _entries(self, body: bytes) -> bytes:
        _, first, room = _READ_IN.unpack_from(body)
        told = b""
        for name, number in list(self._names.items())[first:]:
            entry = _DIRENT.pack(number + _FIRST, number + 1, len(name), stat.S_IFREG >> 12) + name
            entry += bytes(-len(entry) % 8)
            if len(told) + len(entry) > room:
                break
            told += entry
        return told


def answer(unique: int, body: bytes = b"") -> bytes:
    """An answer to a request."""
    return _OUT.pack(_OUT.size + len(body), 0, unique) + body


def failure(unique: int, number: int) -> bytes:
    """An error, by its number of errno."""
    return _OUT.pack(_OUT.size, -number, unique)
