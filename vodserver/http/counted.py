"""A connection's bytes, counted where they go to the socket: what they cost the operator."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CountedTransport", "HttpStatistics", "keep_little_under_way"]

_NOTSENT_LOWAT: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)
_NOTSENT_BYTES: Final = 128 * 1024
_ROUND_TRIP: Final = 68  # offset of tcpi_rtt, microseconds
_SHORT_MICROSECONDS: Final = 1000
_SHORT_BUFFER_BYTES: Final = 256 * 1024  # the kernel doubles it, for its own needs
_TCP_INFO: Final = getattr(socket, "TCP_INFO", None)
_BYTES_ACKED: Final = 120  # offset of tcpi_bytes_acked in struct tcp_info (Linux 4.1 and later)
_TCP_INFO_BYTES: Final = 256


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


class CountedTransport:
    """A transport that counts what is written to it; all else is the transport's own.

    Args:
        transport: asyncio's.
        count: told of bytes handed to the network; negative for those lost with the connection.
        connection: whose it is.
    """

    def __init__(
        self, transport: asyncio.Transport, count: Callable[[int], None], connection: Any
    ) -> None:
        self._transport = transport
        self._gate_count = count
        self.connection = connection
        self._aborted = False
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write, and count."""
        if self._transport.is_closing():
            return
        self._count(memoryview(data).nbytes)
        self._transport.write(data)

    def writelines(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write, and count."""
        if self._transport.is_closing():
            return
        kept = list(parts)
        self._count(sum(memoryview(part).nbytes for part in kept))
        self._transport.writelines(kept)

    def abort(self) -> None:
        """Close at once; what waits is lost."""
        self._aborted = True
        self._transport.abort()

    def settle(self, exc: Exception | None) -> None:
        """Take back what was lost with a connection that did not end well."""
        if exc is None and not self._aborted:
            return
        acknowledged = _acknowledged(self._transport.get_extra_info("socket"))
        if acknowledged is not None and acknowledged < self.written:
            self._gate_count(acknowledged - self.written)

    def note_sent(self, size: int) -> None:
        """Count bytes that went to the socket past this transport."""
        self.written += size
        self._gate_count(size)

    def _count(self, size: int) -> None:
        self.written += size
        self._gate_count(size)


def _acknowledged(sock: Any) -> int | None:
    """Bytes that the other side's kernel has acknowledged; None where that cannot be known."""
    if sock is None or _TCP_INFO is None:
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        return int(struct.unpack_from("=Q", info, _BYTES_ACKED)[0])
    except (OSError, struct.error):
        return None


def keep_little_under_way(sock: Any) -> None:
    """Have the kernel hold no more of a film than the path to the client needs.

    What it holds beyond that is no use to the client, and has left the processor's caches when its
    turn comes. On long paths the kernel only asks for more when little waits to go out. On short
    ones the send buffer is small instead: half a megabyte is on its way at most, which at a
    millisecond is still 4 Gb/s. Into that a range of a quarter of a megabyte goes whole and with
    one system call, also while the client's window is still small: the kernel goes on with it by
    itself, and the client need not wait until the event loop comes round to it again. With twice
    as much, larger ranges to many clients take a fifth to a half more of the processor's time;
    with half as much, all of them do (benchmarks/bench_server.py).

    Args:
        sock: a connection that was just accepted: its round trip is known by then.
    """
    if sock is None or _TCP_INFO is None or _NOTSENT_LOWAT is None:
        return
    with contextlib.suppress(OSError, struct.error):
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        if struct.unpack_from("=I", info, _ROUND_TRIP)[0] <= _SHORT_MICROSECONDS:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SHORT_BUFFER_BYTES)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, _NOTSENT_BYTES)
