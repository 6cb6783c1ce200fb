"""Sockets under the HTTP library: every byte counted where it is written, every stranger bounded.

aiohttp has no limit on connections and none on the time a client may take over its request line.
Both are decided here, between the transport and aiohttp's own protocol.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from tracker.messages import address_group, is_loopback, pack_address
from tracker.settings import TrackerSettings

__all__ = ["ConnectionGate", "peer_address"]


def peer_address(transport: asyncio.BaseTransport) -> bytes | None:
    """The packed address at the other end, or None if the connection is already gone."""
    peername = transport.get_extra_info("peername")
    return pack_address(peername[0]) if peername else None


@dataclass(slots=True)
class ConnectionGate:
    """Admits connections to a server and counts what is written to them.

    Attributes:
        settings: the limits.
        make_protocol: makes the server's protocol for one admitted connection.
        open: connections open now.
        accepted: connections ever admitted.
        refused: connections ever closed because of a limit.
        timed_out: connections closed because nothing could be answered for too long.
        bytes_sent: bytes written, HTTP headers and error answers included.
    """

    settings: TrackerSettings
    make_protocol: Callable[[], asyncio.Protocol]
    open: int = 0
    accepted: int = 0
    refused: int = 0
    timed_out: int = 0
    bytes_sent: int = 0
    _groups: Counter[bytes] = field(default_factory=Counter)

    def __call__(self) -> asyncio.Protocol:
        """One more connection (the protocol factory of `loop.create_server`)."""
        return _Connection(self)

    def admit(self, address: bytes) -> bool:
        """Take one connection from `address` in, if the limits let it."""
        group = address_group(address)
        crowded = (
            not is_loopback(address)
            and self._groups[group] >= self.settings.max_connections_per_address
        )
        if crowded or self.open >= self.settings.max_connections:
            self.refused += 1
            return False
        self.open += 1
        self.accepted += 1
        self._groups[group] += 1
        return True

    def release(self, address: bytes) -> None:
        """An admitted connection from `address` has ended."""
        group = address_group(address)
        self.open -= 1
        self._groups[group] -= 1
        if not self._groups[group]:
            del self._groups[group]


class _CountingTransport:
    """A transport that counts what is written to it and is otherwise the real one."""

    def __init__(self, transport: asyncio.Transport, wrote: Callable[[int], None]) -> None:
        self._transport = transport
        self._wrote = wrote

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._wrote(len(data))
        self._transport.write(data)

    def writelines(self, chunks: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(chunks))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Connection(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, once the gate has let the connection in."""

    def __init__(self, gate: ConnectionGate) -> None:
        self._gate = gate
        self._inner: asyncio.Protocol | None = None
        self._address = b""
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._last_answer = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        address = peer_address(transport)
        if address is None or not self._gate.admit(address):
            self._transport.abort()
            return
        self._address = address
        self._inner = self._gate.make_protocol()
        counting = _CountingTransport(self._transport, self._wrote)
        self._inner.connection_made(cast("asyncio.Transport", counting))
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._inner is not None:
            self._gate.release(self._address)
            self._inner.connection_lost(exc)
            self._inner = None

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def _wrote(self, count: int) -> None:
        self._gate.bytes_sent += count
        self._last_answer = self._loop.time()

    def _watch(self) -> None:
        """Look again when the connection would have gone unanswered for too long."""
        deadline = self._last_answer + self._gate.settings.idle_timeout_seconds
        if self._loop.time() < deadline:
            self._timer = self._loop.call_at(deadline, self._watch)
        elif self._transport is not None:
            self._gate.timed_out += 1
            self._transport.abort()
