"""A player without a screen that takes a film over HTTP as a player does, and counts its halts.

It knows nothing of whom it reads from: a viewer's gateway and a plain server are measured alike.
Its playhead is its own: it runs by the film's time map on the bytes that were read, and on nothing
else.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import aiohttp
import numpy as np

from experiments.errors import LabError
from toast.common.timemap import TimeMap

__all__ = ["PacedReader", "Watched"]

_CHUNK_BYTES = 16 * 1024
_MOST_HALTS = 100
_TOLERANCE_SECONDS = 0.1
"""A shorter halt is none, as for the decoder of the demonstration; its time is counted."""
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10.0, sock_read=60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What became of one viewing."""

    start_seconds: float
    """Until all bytes that the first picture needs were read."""
    stalls: int
    """How often the picture halted for longer than a tenth of a second."""
    stall_seconds: float
    """For how long it halted, shorter halts included."""
    halts: tuple[tuple[float, float], ...]
    """Film time and length of each in seconds, short ones too; the last hundred."""
    film_bytes: int
    """Read."""
    wrong_bytes: int
    """Of these, those that differ from the film's."""


class PacedReader:
    """Reads a film from its first byte to its last, at the film's pace.

    Args:
        timemap: when which byte is needed; of a film that can be read in one go.
        film: the true bytes, to compare with.
        buffer_seconds: how far ahead of the picture it reads: what a player keeps.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        timemap: TimeMap,
        film: BinaryIO,
        *,
        buffer_seconds: float = 2.0,
        clock: Callable[[], float],
    ) -> None:
        self._timemap = timemap
        self._film = film
        self._buffer_seconds = buffer_seconds
        self._clock = clock
        # When a reader that has all bytes before a cell, and none from it on, must halt.
        self._halts_at = np.append(np.minimum.accumulate(timemap.due[::-1])[::-1], timemap.duration)
        self._startup_bytes = max((end for _, end in timemap.startup), default=0)
        self._read = 0
        self._wrong = 0
        self._position = 0.0
        self._started_at: float | None = None
        self._at = 0.0
        self._stalls = 0
        self._stall_seconds = 0.0
        self._stalled_at = -1.0
        self._halts: list[tuple[float, float]] = []

    @property
    def position(self) -> float:
        """Film time of the picture, as of the last bytes read, in seconds."""
        return self._position

    async def watch(
        self,
        http: aiohttp.ClientSession,
        url: str,
        *,
        since: float,
        until_seconds: float = math.inf,
    ) -> Watched:
        """Watch the film to its end, or leave in its course.

        Args:
            http: to read with.
            url: of the film.
            since: the moment from which waiting for the first picture counts.
            until_seconds: film time after which the player leaves; never before the first picture.

        Raises:
            LabError: the film is refused, or breaks off.
        """
        try:
            # A buffer of the least size: what the player has not taken is not on its way to it.
            async with http.get(url, timeout=_TIMEOUT, read_bufsize=_CHUNK_BYTES) as answer:
                if answer.status != 200:
                    raise LabError(f"{url} answers {answer.status}")
                while chunk := await answer.content.read(_CHUNK_BYTES):
                    self._take(chunk)
                    if self._started_at is not None and self._position >= until_seconds:
                        return self._watched(since)
                    await self._wait_for_room()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise LabError(f"{url} breaks off at byte {self._read}: {reason}") from error
        if self._read != self._timemap.film_bytes or self._started_at is None:
            raise LabError(f"{url} ends at byte {self._read}")
        return self._watched(since)

    def _watched(self, since: float) -> Watched:
        assert self._started_at is not None
        return Watched(
            start_seconds=round(self._started_at - since, 4),
            stalls=self._stalls,
            halts=tuple(self._halts),
            stall_seconds=round(self._stall_seconds, 3),
            film_bytes=self._read,
            wrong_bytes=self._wrong,
        )

    def _take(self, chunk: bytes) -> None:
        """Bytes have come: what halted may go on."""
        now = self._clock()
        self._advance(now)
        truth = self._film.read(len(chunk))
        if truth != chunk:
            same = sum(a == b for a, b in zip(truth, chunk, strict=False))
            self._wrong += len(chunk) - same
        self._read += len(chunk)
        if self._started_at is None and self._read >= self._startup_bytes:
            self._started_at = self._at = now

    def _advance(self, now: float) -> None:
        """Let the picture run up to now on what had been read before."""
        if self._started_at is None:
            return
        stop = self._stop()
        position = self._position + now - self._at
        late = position - stop
        if late > 0 and stop < self._timemap.duration:
            if late > _TOLERANCE_SECONDS and stop != self._stalled_at:
                self._stalls += 1  # halting twice at one picture is one halt
                self._stalled_at = stop
            self._stall_seconds += late
            self._halts = [*self._halts, (round(stop, 3), round(late, 3))][-_MOST_HALTS:]
        self._position = min(position, stop)
        self._at = now

    def _stop(self) -> float:
        """Film time at which the picture halts if nothing more is read."""
        if self._read >= self._timemap.film_bytes:
            return self._timemap.duration
        cell = self._read // self._timemap.cell_bytes
        return float(self._halts_at[cell])

    async def _wait_for_room(self) -> None:
        """A player whose buffer is full reads on when the picture has come nearer."""
        if self._started_at is None:
            return
        ahead = self._stop() - self._position - (self._clock() - self._at)
        wait = ahead - self._buffer_seconds
        if math.isfinite(wait) and wait > 0:
            await asyncio.sleep(wait)
