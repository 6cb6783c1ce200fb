"""The server's side of a torrent of several files: one URL for each, read as if they were one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp

from toast.origin.client import Fetched, OriginClient, OriginSettings, Received
from toast.origin.errors import OriginError

__all__ = ["SpanClient", "Stretch"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes [start, start + size) are the whole of one file at the server.

    Attributes:
        start: first byte, in the torrent's bytes.
        size: of the file.
        urls: where it lies, in the order of the film's own servers.
    """

    start: int
    size: int
    urls: tuple[str, ...]


class SpanClient(OriginClient):
    """The client of a film that is one file among several.

    The film's own URL is what this client measures, and what it holds to be up or down. The first
    and last piece of a film hold something of its neighbours in the torrent, too: those few bytes
    come by way of clients of their own, made when they are needed.

    Args:
        http: the session to use; the caller closes it.
        film: where the film lies, in the torrent and at the servers.
        others: the files around it.
        clock: monotonic seconds.
        settings: see `OriginSettings`.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        film: Stretch,
        others: Sequence[Stretch],
        *,
        clock: Callable[[], float],
        settings: OriginSettings | None = None,
    ) -> None:
        super().__init__(http, film.urls, film_bytes=film.size, clock=clock, settings=settings)
        self._start = film.start
        self._size = film.size
        self._others = others
        self._clients: dict[int, OriginClient] = {}

    async def fetch(self, start: int, end: int, received: Received | None = None) -> Fetched:
        """Bytes [start, end) of the torrent.

        Raises:
            OriginError: they could not be had, or lie in what no server offers.
        """
        data, cost = bytearray(), 0
        while start < end:
            part = await self._fetch_part(start, end, received)
            data += part.data
            cost += part.cost
            start += len(part.data)
        return Fetched(bytes(data), cost)

    async def _fetch_part(self, start: int, end: int, received: Received | None) -> Fetched:
        """As much of [start, end) as one file has."""
        film_end = self._start + self._size
        if self._start <= start < film_end:
            base, stop = self._start, min(end, film_end)
            return await super().fetch(start - base, stop - base, _shifted(received, base))
        for number, other in enumerate(self._others):
            if other.start <= start < other.start + other.size:
                client = self._clients.get(number)
                if client is None:
                    client = self._clients[number] = OriginClient(
                        self._http,
                        other.urls,
                        film_bytes=other.size,
                        clock=self._clock,
                        settings=self.settings,
                    )
                base, stop = other.start, min(end, other.start + other.size)
                before = client.received_bytes
                try:
                    return await client.fetch(start - base, stop - base, _shifted(received, base))
                finally:
                    self.received_bytes += client.received_bytes - before
        padding = self._padding(start, end)
        if received is not None:
            received(start, padding)
        return Fetched(padding, 0)

    def _padding(self, start: int, end: int) -> bytes:
        """Between files lie zeroes, which are no file at the server (BEP 47)."""
        following = [other.start for other in self._others if other.start > start]
        following += [self._start] if self._start > start else []
        stop = min(end, *following, end)
        if stop <= start:
            raise OriginError("the VoD server has nothing there")
        return bytes(stop - start)


def _shifted(received: Received | None, base: int) -> Received | None:
    if received is None:
        return None
    return lambda offset, data: received(base + offset, data)
