"""TCP connections of strangers: each bounded in number, time and bytes, and every byte counted."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

from tracker.messages import address_group, is_loopback, pack_address
from tracker.settings import TrackerSettings

__all__ = ["MAX_HEAD_BYTES", "ConnectionGate"]

MAX_HEAD_BYTES: Final = 16 * 1024
"""Longest request head that is waited for."""

_MAX_UNSENT_BYTES: Final = 64 * 1024
"""Who has so much to read yet is answered nothing more."""


@dataclass(slots=True)
class ConnectionGate:
    """Admits connections to a server and counts what is written to them.

    Attributes:
        settings: the limits.
        respond: makes the answer to one request head of an address, and says whether the connection
            stays open; the head is None where one is too long.
        open: connections open now.
        accepted: connections ever admitted.
        refused: connections ever closed because of a limit.
        timed_out: connections closed because nothing could be answered for too long.
        bytes_sent: bytes written, HTTP headers and error answers included.
    """

    settings: TrackerSettings
    respond: Callable[[bytes | None, bytes], tuple[bytes, bool]]
    open: int = 0
    accepted: int = 0
    refused: int = 0
    timed_out: int = 0
    bytes_sent: int = 0
    _groups: Counter[bytes] = field(default_factory=Counter)
    _living: set["_Connection"] = field(default_factory=set)

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

    def close(self) -> None:
        """Close all that are open; what is written already is still sent."""
        for connection in list(self._living):
            connection.close()

    def joined(self, connection: "_Connection") -> None:
        """It is open."""
        self._living.add(connection)

    def left(self, connection: "_Connection") -> None:
        """It is not any more."""
        self._living.discard(connection)


class _Connection(asyncio.Protocol):
    """Cuts what comes into request heads and answers each in turn."""

    def __init__(self, gate: ConnectionGate) -> None:
        self._gate = gate
        self._address: bytes | None = None
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._last_answer = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._unread = b""
        self._full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = self._transport = cast("asyncio.Transport", transport)
        peername = stream.get_extra_info("peername")
        address = pack_address(peername[0]) if peername else None
        if address is None or not self._gate.admit(address):
            stream.abort()
            return
        self._address = address
        self._gate.joined(self)
        stream.set_write_buffer_limits(high=_MAX_UNSENT_BYTES)
        self._watch()

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._address is not None:
            self._gate.release(self._address)
            self._gate.left(self)
            self._address = None

    def data_received(self, data: bytes) -> None:
        self._unread = self._unread + data if self._unread else data
        self._answer()

    def pause_writing(self) -> None:
        self._full = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._full = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._answer()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _answer(self) -> None:
        stream, gate = self._transport, self._gate
        answers: list[bytes] = []
        length, keep_open = 0, True
        while keep_open and stream is not None and self._address is not None and not self._full:
            head, end, rest = self._unread.partition(b"\r\n\r\n")
            if end and len(head) <= MAX_HEAD_BYTES:
                self._unread = rest
                answer, keep_open = gate.respond(head, self._address)
            elif len(self._unread) > MAX_HEAD_BYTES:
                answer, keep_open = gate.respond(None, self._address)
            else:
                break
            answers.append(answer)
            length += len(answer)
            if length >= _MAX_UNSENT_BYTES:  # a pipeline of questions: see whether it reads, too
                self._loop.call_soon(self._answer)
                break
        if stream is None or not answers:
            return
        gate.bytes_sent += length
        self._last_answer = self._loop.time()
        stream.write(answers[0] if len(answers) == 1 else b"".join(answers))
        if not keep_open:
            self._unread = b""
            stream.close()

    def _watch(self) -> None:
        """Look again when the connection would have gone unanswered for too long."""
        deadline = self._last_answer + self._gate.settings.idle_timeout_seconds
        if self._loop.time() < deadline:
            self._timer = self._loop.call_at(deadline, self._watch)
        elif self._transport is not None:
            self._gate.timed_out += 1
            self._transport.abort()
