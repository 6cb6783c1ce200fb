"""Verified bytes for whoever waits for them: from disk, or from a piece that is still arriving."""

import asyncio
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.origin import OriginError
from toast.swarm import FilmFile, FilmSwarm
from toast.viewer.errors import FilmUnavailable
from toast.viewer.supply import Supply

__all__ = ["Reading"]


class Reading:
    """The reading side of a viewing.

    Args:
        geometry: how the film is cut.
        file: where complete pieces lie.
        supply: whose early blocks can be read, and who has the pieces that rotted on disk.
        wanted: called when somebody begins to wait.

    Attributes:
        have: bool[pieces], verified. The viewer's own array.
        swarm: reads what is not on disk yet; None once the viewing has left the swarm.
        urgent: pieces that are wanted at once wherever the playhead is, and by how many.
        in_use: verified pieces that are being read now, and by how many.
    """

    def __init__(
        self, geometry: Geometry, file: FilmFile, supply: Supply, wanted: Callable[[], None]
    ) -> None:
        self.have: NDArray[np.bool_] = np.zeros(geometry.pieces, dtype=np.bool_)
        self.swarm: FilmSwarm | None = None
        self.urgent: dict[int, int] = {}
        self.in_use: Counter[int] = Counter()
        self._geometry = geometry
        self._file = file
        self._supply = supply
        self._wanted = wanted
        self._arrivals: dict[int, asyncio.Event] = {}
        self._reads: dict[int, asyncio.Future[bytes]] = {}
        self._over = False

    def arrived(self, piece: int) -> None:
        """More of a piece can be read: wake who waits for it."""
        arrival = self._arrivals.pop(piece, None)
        if arrival is not None:
            arrival.set()

    def piece_read(self, piece: int, data: bytes) -> None:
        """Take the answer to a read that the file could not satisfy yet."""
        future = self._reads.pop(piece, None)
        if future is not None and not future.done():
            future.set_result(data)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._over

    def end(self) -> None:
        """Let go of everyone who waits."""
        self._over = True
        for arrival in self._arrivals.values():
            arrival.set()
        for read in self._reads.values():
            if not read.done():
                read.set_result(b"")

    def is_here(self, offset: int) -> bool:
        """Whether the byte at an offset can be read without waiting for others."""
        piece = self._geometry.piece_of(offset)
        return bool(self.have[piece]) or bool(self._early(piece, offset, offset + 1))

    async def read(self, offset: int, end: int) -> bytes:
        """Verified bytes from `offset` on, at least one, as soon as it is there.

        Args:
            offset: the film's byte to begin at.
            end: where to stop at the latest.

        Raises:
            FilmUnavailable: the viewing ended before it came.
        """
        piece = self._geometry.piece_of(offset)
        first = self._geometry.piece_start(piece)
        waited = False
        while not self.have[piece]:
            early = self._early(piece, offset, end)
            if early:
                return early
            await self._wait(piece)
            waited = True
        return (await self._complete(piece, fresh=waited))[offset - first : end - first]

    async def piece(self, piece: int, *, urgent: bool = False) -> bytes:
        """A whole verified piece.

        Args:
            piece: its number.
            urgent: whether it is wanted now, wherever the playhead is.

        Raises:
            FilmUnavailable: the viewing ended before it came.
        """
        if urgent and not self.have[piece]:
            self.urgent[piece] = self.urgent.get(piece, 0) + 1
            self._wanted()
        try:
            while not self.have[piece]:
                await self._wait(piece)
        finally:
            if urgent and piece in self.urgent:
                self.urgent[piece] -= 1
                if self.urgent[piece] <= 0:
                    del self.urgent[piece]
        return await self._complete(piece)

    def _early(self, piece: int, offset: int, end: int) -> bytes:
        first = self._geometry.piece_start(piece)
        stop = min(end - first, self._geometry.piece_size(piece))
        # A few blocks at a time: a player that leaves has not taken a whole piece for nothing.
        stop = min(stop, offset - first + 16 * BLOCK_BYTES)
        return self._supply.early.read(piece, offset - first, stop)

    async def _wait(self, piece: int) -> None:
        if self._over:
            raise FilmUnavailable("the viewing has ended")
        await self._arrivals.setdefault(piece, asyncio.Event()).wait()

    async def _complete(self, piece: int, *, fresh: bool = False) -> bytes:
        self.in_use[piece] += 1
        try:
            data = await self._file.read_piece(piece, fresh=fresh)
            return data if data is not None else await self._read_around(piece)
        finally:
            self.in_use[piece] -= 1
            if not self.in_use[piece]:
                del self.in_use[piece]

    async def _read_around(self, piece: int) -> bytes:
        """A verified piece that the file does not hold intact: not flushed yet, or rotten."""
        if self.swarm is not None:
            future = self._reads.get(piece)
            if future is None:
                future = self._reads[piece] = asyncio.get_running_loop().create_future()
                self.swarm.read_piece(piece)
            data = await asyncio.shield(future)
            if data and self._supply.hash_is_right(piece, data):
                self._file.remember(piece, data)
                return data
        try:
            data = await self._supply.fetch_piece(piece)
        except OriginError as error:
            raise FilmUnavailable(
                f"piece {piece} is damaged on disk ({error}): start again to fetch it anew"
            ) from error
        self._file.remember(piece, data)
        return data
