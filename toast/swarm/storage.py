"""The film's file on disk: found again after a crash, and read only through its hashes."""

import asyncio
import errno
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.swarm.errors import SwarmError

__all__ = ["FilmFile"]

_CACHE_BYTES = 16 * 1024 * 1024


class FilmFile:
    """One film's file, sparse while it is incomplete.

    Every byte that leaves here has been hashed on its way out: neither a block that libtorrent
    has not flushed yet nor a rotten sector can reach a player.

    Args:
        path: where the film lies (need not exist yet).
        geometry: its cut.
        piece_hashes: SHA-1 of each piece.
    """

    def __init__(self, path: Path, geometry: Geometry, piece_hashes: Sequence[bytes]) -> None:
        self.path = path
        self._geometry = geometry
        self._hashes = piece_hashes
        self._cache: OrderedDict[int, bytes] = OrderedDict()

    async def read_piece(self, piece: int) -> bytes | None:
        """A verified piece, or None if the file does not (yet) hold it intact."""
        cached = self._cache.get(piece)
        if cached is not None:
            self._cache.move_to_end(piece)
            return cached
        data = await asyncio.to_thread(self._read_verified, piece)
        if data is not None:
            self.remember(piece, data)
        return data

    def remember(self, piece: int, data: bytes) -> None:
        """Keep a verified piece at hand; several readers of one film follow each other closely."""
        self._cache[piece] = data
        while len(self._cache) * self._geometry.piece_bytes > _CACHE_BYTES and len(self._cache) > 1:
            self._cache.popitem(last=False)

    def scan(self, progress: Callable[[int, int], None] | None = None) -> NDArray[np.bool_]:
        """Which pieces the file holds intact: hashes whatever is not a hole. Blocking.

        No journal is kept: after a crash only the bytes themselves can be trusted.

        Raises:
            SwarmError: something other than a film's file is in the way.
        """
        have = np.zeros(self._geometry.pieces, dtype=np.bool_)
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return have
        except OSError as error:
            raise SwarmError(f"{self.path} cannot be read: {error.strerror}") from error
        if not self.path.is_file():
            raise SwarmError(f"{self.path} is not a file: choose another --folder")
        if size > self._geometry.film_bytes:
            raise SwarmError(
                f"{self.path} is another file of the same name: choose another --folder"
            )
        try:
            pieces = self._pieces_with_data(size)
        except OSError as error:
            raise SwarmError(f"{self.path} cannot be read: {error.strerror}") from error
        for done, piece in enumerate(pieces, start=1):
            have[piece] = self._read_verified(piece) is not None
            if progress is not None:
                progress(done, len(pieces))
        return have

    def sha256(self) -> str:
        """SHA-256 of the whole file, hexadecimal. Blocking."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while chunk := file.read(1024 * 1024):
                digest.update(chunk)
        return digest.hexdigest()

    def _pieces_with_data(self, size: int) -> list[int]:
        pieces: set[int] = set()
        with self.path.open("rb") as file:
            offset = 0
            while offset < size:
                try:
                    start = os.lseek(file.fileno(), offset, os.SEEK_DATA)
                except OSError as error:
                    if error.errno == errno.ENXIO:
                        break  # only a hole is left
                    raise
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                pieces.update(self._geometry.pieces_of(start, min(end, size)))
                offset = end
        return sorted(pieces)

    def _read_verified(self, piece: int) -> bytes | None:
        size = self._geometry.piece_size(piece)
        try:
            with self.path.open("rb", buffering=0) as file:
                data = os.pread(file.fileno(), size, self._geometry.piece_start(piece))
        except OSError:
            return None
        if (
            len(data) != size
            or hashlib.sha1(data, usedforsecurity=False).digest() != (self._hashes[piece])
        ):
            return None
        return data
