"""Between the sockets and aiohttp: how many may connect, how long they may dawdle, what was sent.

Bytes are counted where they go to the socket, headers and all: this is what the server costs its
operator.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

__all__ = ["Gate", "HttpStatistics"]

_TCP_INFO: Final = getattr(socket, "TCP_INFO", None)
_BYTES_ACKED: Final = 120  # offset of tcpi_bytes_acked in struct tcp_info (Linux 4.1 and later)
_TCP_INFO_BYTES: Final = 256

_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class HttpStatistics:
    """What the HTTP side did since it started.

    Attributes:
        bytes_sent: headers and contents handed to the network and not lost with a connection.
        connections: open now.
        accepted: connections let in so far.
        refused: connections turned away because there were too many.
    """

    bytes_sent: int
    connections: int
    accepted: int
    refused: int


class Gate:
    """Lets connections in, one protocol for each; a factory for `loop.create_server`.

    Args:
        make_protocol: makes aiohttp's protocol.
        limit: most connections at a time.
        header_timeout: seconds in which a new connection must have sent something whole enough
            to be answered.
    """

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        limit: int,
        header_timeout: float,
    ) -> None:
        self._make_protocol = make_protocol
        self._limit = limit
        self._header_timeout = header_timeout
        self._open: set[_Connection] = set()
        self._refusals: set[_Refusal] = set()
        self._empty = asyncio.Event()
        self._sent = 0
        self._accepted = 0
        self._refused = 0

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        if len(self._open) >= self._limit:
            self._refused += 1
            refusal = _Refusal(self)
            self._refusals.add(refusal)
            return refusal
        self._accepted += 1
        connection = _Connection(self, self._make_protocol(), self._header_timeout)
        self._open.add(connection)
        return connection

    def statistics(self) -> HttpStatistics:
        """What was done so far; bytes that still wait in our own memory are not counted."""
        waiting = sum(connection.waiting_bytes for connection in self._open)
        return HttpStatistics(self._sent - waiting, len(self._open), self._accepted, self._refused)

    def count(self, sent: int) -> None:
        """Count bytes handed to the network; negative for those lost with their connection."""
        self._sent += sent

    def leave(self, connection: "_Connection | _Refusal") -> None:
        """Forget a connection that ended."""
        if isinstance(connection, _Connection):
            self._open.discard(connection)
        else:
            self._refusals.discard(connection)
        if not self._open and not self._refusals:
            self._empty.set()

    async def close(self) -> None:
        """Cut every connection that is left, and wait until the last is gone."""
        self._empty.clear()
        left: list[_Connection | _Refusal] = [*self._open, *self._refusals]
        for connection in left:
            connection.cut()
        if self._open or self._refusals:
            await self._empty.wait()


class _Refusal(asyncio.Protocol):
    """Tells a client to come back later."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(_FULL)
        self._gate.count(len(_FULL))
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's protocol
        self._gate.leave(self)

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _Connection(asyncio.Protocol):
    """One connection: aiohttp's protocol behind it, the counted transport before it."""

    def __init__(self, gate: Gate, inner: asyncio.Protocol, header_timeout: float) -> None:
        self._gate = gate
        self._inner = inner
        self._header_timeout = header_timeout
        self._transport: _CountedTransport | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes written that the kernel has not taken yet."""
        return 0 if self._transport is None else int(self._transport.get_write_buffer_size())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = _CountedTransport(cast("asyncio.Transport", transport), self._gate)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._header_timeout, self._cut_if_silent)
        self._inner.connection_made(cast("asyncio.Transport", self._transport))

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.settle(exc)
            self._transport = None
        self._inner.connection_lost(exc)
        self._gate.leave(self)

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _cut_if_silent(self) -> None:
        # Something was answered, or is being: from here aiohttp's own keep-alive clock runs.
        if self._transport is not None and self._transport.written == 0:
            self._transport.abort()


class _CountedTransport:
    """A transport that counts what is written to it; all else is the transport's own."""

    def __init__(self, transport: asyncio.Transport, gate: Gate) -> None:
        self._transport = transport
        self._gate = gate
        self._aborted = False
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._transport.is_closing():
            return
        self._count(memoryview(data).nbytes)
        self._transport.write(data)

    def writelines(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        if self._transport.is_closing():
            return
        kept = list(parts)
        self._count(sum(memoryview(part).nbytes for part in kept))
        self._transport.writelines(kept)

    def abort(self) -> None:
        self._aborted = True
        self._transport.abort()

    def settle(self, exc: Exception | None) -> None:
        """Take back what was lost with a connection that did not end well."""
        if exc is None and not self._aborted:
            return
        acknowledged = _acknowledged(self._transport.get_extra_info("socket"))
        if acknowledged is not None and acknowledged < self.written:
            self._gate.count(acknowledged - self.written)

    def _count(self, size: int) -> None:
        self.written += size
        self._gate.count(size)


def _acknowledged(sock: Any) -> int | None:
    """Bytes that the other side's kernel has acknowledged; None where that cannot be known."""
    if sock is None or _TCP_INFO is None:
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        return int(struct.unpack_from("=Q", info, _BYTES_ACKED)[0])
    except (OSError, struct.error):
        return None
