"""A thin line to a server: connections pass through it late, and together at a bounded rate.

A relay above TCP, not an emulated network: the kernel's own loopback is under it, so a connection
is made at once and no congestion control is felt. What it is for is that the server is no longer
infinitely fast. For times that must be those of a network, use `netem`.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from experiments.errors import LabError

__all__ = ["ThinLine"]

_PART_BYTES = 4 * 1024
_MOST_QUEUED = 64
"""Parts on their way in one direction of one connection: a full line pushes back."""


class ThinLine:
    """Relays every connection to one server, as an async context.

    Args:
        url: of something on the server.
        rate: bytes/second from the server, shared by all connections, first come first served.
        delay_seconds: each way.
        clock: monotonic seconds.

    Raises:
        LabError: the URL does not say where the server is.

    Attributes:
        url: the same thing through the line, once entered.
        carried_bytes: from the server.
    """

    def __init__(
        self, url: str, *, rate: float, delay_seconds: float, clock: Callable[[], float]
    ) -> None:
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise LabError(f"{url} names no server and port")
        self._target = (parts.hostname, parts.port)
        self._parts = parts
        self._rate = rate
        self._delay = delay_seconds
        self._clock = clock
        self._free_at = 0.0
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.url = url
        self.carried_bytes = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = urlunsplit(self._parts._replace(netloc=f"{host}:{port}"))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        tasks = tuple(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        there: asyncio.StreamWriter | None = None
        try:
            back, there = await asyncio.open_connection(*self._target)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._carry(reader, there, rated=False))
                ways.create_task(self._carry(back, writer, rated=True))
        except (OSError, asyncio.CancelledError, BaseExceptionGroup):
            pass  # one of the two ends hung up: so does the line
        finally:
            del self._connections[task]
            writer.transport.abort()
            if there is not None:
                there.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, rated: bool
    ) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_MOST_QUEUED)
        delivering = asyncio.create_task(self._deliver(queue, writer))
        try:
            while part := await reader.read(_PART_BYTES):
                now = self._clock()
                if rated:
                    self._free_at = max(self._free_at, now) + len(part) / self._rate
                    self.carried_bytes += len(part)
                    await queue.put((self._free_at + self._delay, part))
                    # The line is busy until then: what comes behind waits at the server.
                    await asyncio.sleep(self._free_at - now)
                else:
                    await queue.put((now + self._delay, part))
            await queue.put((self._clock() + self._delay, b""))
            await delivering
            raise ConnectionResetError  # the other way ends with it
        finally:
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)

    async def _deliver(
        self, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        while True:
            when, part = await queue.get()
            await asyncio.sleep(when - self._clock())
            if not part:
                return
            writer.write(part)
            await writer.drain()
