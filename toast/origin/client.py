"""Ranges of the film from the VoD server, with an estimate of how long the next one will take."""

import errno
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from toast.origin.errors import OriginBusyError, OriginError
from toast.origin.lanes import Lanes
from toast.policy.handover import OriginEstimate

__all__ = ["Fetched", "OriginClient", "OriginSettings", "Received"]

Received = Callable[[int, bytes], None]

_BUSY = 503
_PIECE_BYTES = 256 * 1024
_PIECE_FLIGHTS = 4.2
"""Round trips in which a cold connection sends a piece: ten packets, then doubling (RFC 6928)."""
_CONTENT_RANGE = re.compile(r"^bytes (\d{1,18})-(\d{1,18})/(\d{1,18})$")


@dataclass(frozen=True, slots=True)
class OriginSettings:
    """How patient the client is. All in seconds but the rate."""

    connect_seconds: float = 2.0
    """Time to open a connection."""
    silence_seconds: float = 3.0
    """Longest pause within an answer."""
    first_retry_seconds: float = 0.25
    """Wait after a first failure; doubles with each further one."""
    most_retry_seconds: float = 4.0
    """Longest wait between tries."""
    assumed_rtt_seconds: float = 0.1
    """Round trip assumed until one was measured."""
    assumed_rate: float = 2_500_000.0
    """Bytes per second assumed until measured: 20 Mb/s. On a long way less: see `estimate`."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Bytes of the film, and how many bytes the server sent for them (headers included)."""

    data: bytes
    cost: int


class OriginClient:
    """Fetches ranges of one film; several at once share one pool of connections.

    Args:
        http: the session to use; the caller closes it.
        urls: where the whole film lies; the next one is tried when one fails.
        film_bytes: the size that the film must have there.
        clock: monotonic seconds.
        settings: see `OriginSettings`.

    Attributes:
        last_error: why the last fetch failed; None if it did not.
        received_bytes: all that servers sent, headers and broken answers included.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        urls: tuple[str, ...],
        *,
        film_bytes: int,
        clock: Callable[[], float],
        settings: OriginSettings | None = None,
    ) -> None:
        self._http = http
        self._urls = urls
        self._current = 0
        self._film_bytes = film_bytes
        self._clock = clock
        self.settings = settings or OriginSettings()
        self._rtts: deque[float] = deque(maxlen=20)
        self._rates: deque[float] = deque(maxlen=20)
        self._failures = 0
        self._retry_at = 0.0
        self._lanes = Lanes(clock)
        self.last_error: str | None = None
        self.received_bytes = 0

    @property
    def up(self) -> bool:
        """Whether the last try succeeded, or it is time for another one."""
        return bool(self._urls) and (self._failures == 0 or self._clock() >= self._retry_at)

    @property
    def retry_in(self) -> float:
        """Seconds until the server is tried again; 0 while it is up."""
        return 0.0 if self.up else max(0.0, self._retry_at - self._clock())

    def estimate(self) -> OriginEstimate:
        """How long the next fetch will take: pessimistic (p90 of RTTs, p10 of rates).

        While no rate was measured, a connection is taken to be cold.
        """
        settings = self.settings
        rtt = sorted(self._rtts)[int(len(self._rtts) * 0.9)] if self._rtts else None
        rate = sorted(self._rates)[len(self._rates) // 10] if self._rates else None
        if rate is None:
            rate = settings.assumed_rate
            if rtt is not None:  # of a new connection, so of two round trips
                rate = min(rate, _PIECE_BYTES / (_PIECE_FLIGHTS * rtt / 2))
        return OriginEstimate(
            rtt_seconds=settings.assumed_rtt_seconds if rtt is None else rtt,
            rate=rate,
            up=self.up,
        )

    async def fetch(self, start: int, end: int, received: Received | None = None) -> Fetched:
        """Bytes [start, end) of the film.

        A server that is answering others and turns this one away (503) is asked again when one of
        the others is through: see `toast.policy.crowding`.

        Args:
            start: first byte.
            end: byte after the last one.
            received: called with each part as it comes: its offset in the film, and its bytes. What
                it raises ends the fetch.

        Raises:
            OriginError: they could not be had; `retry_in` says when to try again.
        """
        if not self._urls:
            raise OriginError("no VoD server is known for this film: give one with --origin")
        while (fetched := await self._try(start, end, received)) is None:
            pass
        return fetched

    async def _try(self, start: int, end: int, received: Received | None) -> Fetched | None:
        """Ask once, when there is room; None if the server has too much to do just now."""
        await self._lanes.enter()
        nth = self._current
        url = self._urls[nth % len(self._urls)]
        try:
            fetched = await self._fetch(url, start, end, received)
        except OriginBusyError as error:
            # Where the film lies elsewhere as well, that one may have time.
            alone = len(self._urls) == 1 or self._lanes.is_answering
            if alone and await self._lanes.refused():
                return None
            raise self._failed(nth, str(error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise self._failed(nth, f"VoD server {url} cannot be reached: {reason}") from error
        except OriginError as error:
            raise self._failed(nth, str(error)) from error
        finally:
            self._lanes.leave()
        self._failures = 0
        self.last_error = None
        return fetched

    def distrust(self) -> OriginError:
        """Take note that the server sent wrong bytes; returns the error to raise."""
        url = self._urls[self._current % len(self._urls)]
        return self._failed(
            self._current, f"VoD server {url} sends other bytes than the .torrent promises"
        )

    def _failed(self, nth: int, message: str) -> OriginError:
        """Turn to the next URL, once for all fetches that were under way with this one."""
        if nth != self._current:
            return OriginError(message)
        settings = self.settings
        self._current += 1
        self._failures += 1
        wait = settings.first_retry_seconds * 2 ** min(self._failures - 1, 10)
        self._retry_at = self._clock() + min(wait, settings.most_retry_seconds)
        self.last_error = message
        return OriginError(message)

    async def _fetch(self, url: str, start: int, end: int, received: Received | None) -> Fetched:
        settings = self.settings
        asked_at = self._clock()
        timeout = aiohttp.ClientTimeout(
            total=None, connect=settings.connect_seconds, sock_read=settings.silence_seconds
        )
        headers = {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        try:
            answer = await self._http.get(
                url, headers=headers, timeout=timeout, allow_redirects=True, max_redirects=3
            )
        except (aiohttp.ClientError, OSError) as error:
            if _hung_up(error) and self._lanes.is_answering:
                # It hung up before our request was there: what it said is lost on the way.
                raise OriginBusyError(
                    f"VoD server {url} hangs up on one connection more"
                ) from error
            raise
        except RuntimeError as error:
            # An event loop that has lost track of one of its sockets says so, and aiohttp passes
            # it on as it is.
            raise OriginError(f"VoD server {url} cannot be reached: {error}") from error
        async with answer:
            head = sum(len(name) + len(value) + 4 for name, value in answer.raw_headers)
            head += len(f"HTTP/1.1 {answer.status} {answer.reason}") + 4
            self.received_bytes += head
            self._check(url, answer, start, end)
            answered_at = self._clock()
            self._rtts.append(answered_at - asked_at)  # the next one must not wait for the body
            self._lanes.answer_begins()
            try:
                data = await self._read(answer, start, end, received)
            finally:
                self._lanes.answer_ends()
        if len(data) != end - start:
            raise OriginError(f"VoD server {url} broke off after {len(data)} bytes")
        took = self._clock() - answered_at
        if len(data) >= 64 * 1024 and took > 0:
            self._rates.append(len(data) / took)
        return Fetched(data, len(data) + head)

    def _check(self, url: str, answer: aiohttp.ClientResponse, start: int, end: int) -> None:
        whole = start == 0 and end == self._film_bytes
        if answer.status == 200 and whole:
            return
        if answer.status == _BUSY:
            raise OriginBusyError(f"VoD server {url} has too many connections ({_BUSY})")
        if answer.status != 206:
            # A 200 for a part would be the whole film: leaving the block closes the connection.
            answer.close()
            raise OriginError(f"VoD server {url} answers {answer.status} to a range request")
        match = _CONTENT_RANGE.match(answer.headers.get("Content-Range", ""))
        if match is None or (int(match[1]), int(match[2]) + 1) != (start, end):
            answer.close()
            raise OriginError(f"VoD server {url} sends another range than was asked for")
        if int(match[3]) != self._film_bytes:
            answer.close()
            raise OriginError(f"VoD server {url} has another film there ({match[3]} bytes)")

    async def _read(
        self, answer: aiohttp.ClientResponse, start: int, end: int, received: Received | None
    ) -> bytes:
        data = bytearray()
        async for chunk in answer.content.iter_any():
            at = start + len(data)
            data += chunk
            self.received_bytes += len(chunk)
            if start + len(data) > end:
                answer.close()
                raise OriginError("the VoD server sends more than was asked for")
            if received is not None:
                received(at, chunk)
        return bytes(data)


def _hung_up(error: Exception) -> bool:
    """Whether a connection was made, and closed before there was an answer."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return True
    return isinstance(error, OSError) and error.errno in {errno.ECONNRESET, errno.EPIPE}
