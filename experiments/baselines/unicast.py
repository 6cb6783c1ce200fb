"""A plain HTTP player: what the operator would have without any swarm."""

import asyncio
import hashlib

import aiohttp

from experiments.baselines.viewing import Baseline, Receipts
from experiments.errors import LabError
from experiments.real.client import ClientContext
from toast.common.geometry import BLOCK_BYTES
from toast.swarm import Metainfo

__all__ = ["UnicastViewer"]

_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10.0, sock_read=60.0)
_RETRY_SECONDS = 0.5
_TRIES = 20


class UnicastViewer(Baseline):
    """Takes the whole film over one connection, in order, as fast as it comes.

    That is what players and browsers do with a film whose index stands in front and that fits
    their buffer (that of mpv is 150 MB, a browser's is the disk). Paced delivery would spread the
    same bytes over time. A connection that breaks is made anew from the byte reached, as players
    do. It has no swarm: behaviours do not change what it gets, and it gives nothing. What has come
    is checked against the .torrent's hashes and not kept.

    A download cap holds for what it has taken; what waits in buffers meanwhile is not seen.
    """

    def __init__(self, context: ClientContext) -> None:
        super().__init__(context)
        self._film_bytes = 0
        self._piece = bytearray()

    async def _join(self, film: Metainfo) -> None:
        if not film.origins:
            raise LabError(f"{self.context.source} names no server of the film itself")
        self._spawn(self._download(film, film.origins[0]))

    async def _leave(self) -> None:
        self._piece.clear()

    def receipts(self) -> Receipts:
        """What it got so far."""
        return Receipts(origin=self._film_bytes)

    async def _download(self, film: Metainfo, url: str) -> None:
        failures = 0
        while self._film_bytes < film.film_bytes:
            before = self._film_bytes
            try:
                await self._read(film, url)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failures = 0 if self._film_bytes > before else failures + 1
                if failures == _TRIES:
                    reason = str(error) or type(error).__name__
                    raise LabError(f"VoD server {url} cannot be reached: {reason}") from error
                await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self, film: Metainfo, url: str) -> None:
        """Read on from the byte reached."""
        rate = self.context.viewer.link.download_rate
        headers = {"Range": f"bytes={self._film_bytes}-", "Accept-Encoding": "identity"}
        first, began_at = self._film_bytes, self._loop.time()
        async with self.context.http.get(
            url, headers=headers, timeout=_TIMEOUT, raise_for_status=True
        ) as answer:
            if answer.status != 206:
                raise LabError(f"VoD server {url} answers {answer.status} to a range request")
            async for chunk in answer.content.iter_chunked(BLOCK_BYTES):
                if rate is not None:
                    due = began_at + (self._film_bytes + len(chunk) - first) / rate
                    await asyncio.sleep(max(0.0, due - self._loop.time()))
                self._take(film, chunk)

    def _take(self, film: Metainfo, chunk: bytes) -> None:
        """More of the film: what completes a piece is looked at."""
        self._film_bytes += len(chunk)
        self._piece += chunk
        while True:
            piece = (self._film_bytes - len(self._piece)) // film.geometry.piece_bytes
            if piece == film.geometry.pieces:
                return
            size = film.geometry.piece_size(piece)
            if len(self._piece) < size:
                return
            digest = hashlib.sha1(self._piece[:size], usedforsecurity=False).digest()
            if digest != film.piece_hashes[piece]:
                raise LabError(f"piece {piece} of the film came damaged from the VoD server")
            del self._piece[:size]
            self._got(piece)
