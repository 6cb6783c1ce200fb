"""The film on disk: found again after a crash, and read only through its hashes."""

import asyncio
import errno
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.swarm.errors import SwarmError
from toast.swarm.layout import Layout, Segment

__all__ = ["FilmFile"]

_CACHE_BYTES = 16 * 1024 * 1024
_AT_ONCE_BYTES = 1024 * 1024


class FilmFile:
    """What is stored of one film: one sparse file, a file for each piece, or several files.

    Every byte that leaves here has been hashed on its way out: neither a block that libtorrent
    has not flushed yet nor a rotten sector can reach a player.

    Args:
        layout: where its bytes lie (the files need not exist yet).
        geometry: its cut.
        piece_hashes: SHA-1 of each piece.
    """

    def __init__(self, layout: Layout, geometry: Geometry, piece_hashes: Sequence[bytes]) -> None:
        self.layout = layout
        self._geometry = geometry
        self._hashes = piece_hashes
        self._cache: OrderedDict[int, bytes] = OrderedDict()

    async def read_piece(self, piece: int, *, fresh: bool = False) -> bytes | None:
        """A verified piece, or None if the file does not (yet) hold it intact.

        Args:
            piece: its number.
            fresh: whether it has just come, so that it is in memory still.
        """
        cached = self._cache.get(piece)
        if cached is not None:
            self._cache.move_to_end(piece)
            return cached
        data = None
        if fresh and self._geometry.piece_size(piece) <= _AT_ONCE_BYTES:
            # A player waits for it, and a thread would have to wait for its turn beside all else
            # that the coming of a piece sets off.
            data = self._read_verified(piece, at_once=True)
        if data is None:
            data = await asyncio.to_thread(self._read_verified, piece)
        if data is not None:
            self.remember(piece, data)
        return data

    def remember(self, piece: int, data: bytes) -> None:
        """Keep a verified piece at hand; several readers of one film follow each other closely."""
        self._cache[piece] = data
        while len(self._cache) * self._geometry.piece_bytes > _CACHE_BYTES and len(self._cache) > 1:
            self._cache.popitem(last=False)

    def forget(self, piece: int) -> None:
        """A piece was deleted: keep no copy of it either."""
        self._cache.pop(piece, None)

    def scan(self, progress: Callable[[int, int], None] | None = None) -> NDArray[np.bool_]:
        """Which pieces are stored intact: hashes whatever is not a hole. Blocking.

        No journal is kept: after a crash only the bytes themselves can be trusted. Where each
        piece has a file, those that are not intact are deleted.

        Raises:
            SwarmError: something other than a film's file is in the way.
        """
        have = np.zeros(self._geometry.pieces, dtype=np.bool_)
        found: set[int] = set()
        for segment in self.layout.segments:
            found |= self._pieces_in(segment)
        pieces = sorted(found)
        for done, piece in enumerate(pieces, start=1):
            have[piece] = self._read_verified(piece) is not None
            if self.layout.per_piece and not have[piece]:
                self._delete(piece)
            if progress is not None:
                progress(done, len(pieces))
        return have

    def _delete(self, piece: int) -> None:
        try:
            self.layout.delete(piece)
        except OSError as error:
            raise SwarmError(f"{error.filename} cannot be deleted: {error.strerror}") from error

    def _pieces_in(self, segment: Segment) -> set[int]:
        """The pieces of which the file of a segment may hold something."""
        path = self.layout.path(segment)
        try:
            size = path.stat().st_size
            if not path.is_file():
                raise SwarmError(f"{path} is not a file: choose another --folder")
            if size > segment.size:
                raise SwarmError(
                    f"{path} is another file of the same name: choose another --folder"
                )
            if self.layout.per_piece:
                return {self._geometry.piece_of(segment.start)}
            return self._pieces_with_data(segment, size)
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise SwarmError(f"{path} cannot be read: {error.strerror}") from error

    def sha256(self, start: int = 0, end: int | None = None) -> str:
        """SHA-256 of bytes [start, end), by default of all, hexadecimal. Blocking."""
        digest = hashlib.sha256()
        for part in self.layout.parts(start, self._geometry.film_bytes if end is None else end):
            left = part.size
            with part.path.open("rb") as file:
                file.seek(part.offset)
                while chunk := file.read(min(left, 1024 * 1024)):
                    digest.update(chunk)
                    left -= len(chunk)
        return digest.hexdigest()

    def _pieces_with_data(self, segment: Segment, size: int) -> set[int]:
        pieces: set[int] = set()
        with self.layout.path(segment).open("rb") as file:
            offset = 0
            while offset < size:
                try:
                    start = os.lseek(file.fileno(), offset, os.SEEK_DATA)
                except OSError as error:
                    if error.errno == errno.ENXIO:
                        break  # only a hole is left
                    raise
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                first = segment.start + start
                pieces.update(self._geometry.pieces_of(first, segment.start + min(end, size)))
                offset = end
        return pieces

    def _read_verified(self, piece: int, *, at_once: bool = False) -> bytes | None:
        """A piece if it is intact; at once: and only if it is in memory, without a wait."""
        start, size = self._geometry.piece_start(piece), self._geometry.piece_size(piece)
        read = _read_from_memory if at_once else os.pread
        parts = []
        try:
            for part in self.layout.parts(start, start + size):
                with part.path.open("rb", buffering=0) as file:
                    parts.append(read(file.fileno(), part.size, part.offset))
        except OSError:
            return None
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        # A short read moves all that follows: the hash shows it.
        if len(data) != size:
            return None
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        return data if digest == self._hashes[piece] else None


def _read_from_memory(descriptor: int, size: int, offset: int) -> bytes:
    """As pread(2), but fails or reads less where the disk would have to be waited for.

    Raises:
        OSError: nothing of it is in memory, or the system cannot tell.
    """
    if not hasattr(os, "RWF_NOWAIT"):
        raise BlockingIOError
    data = bytearray(size)
    length = os.preadv(descriptor, [data], offset, os.RWF_NOWAIT)
    return bytes(memoryview(data)[:length])
