"""The UDP front end's socket: many datagrams for each time the event loop wakes us.

asyncio's datagram transports make a tuple, a callback and a task step of each datagram; a plain
non-blocking socket that is drained whenever it is readable answers several times as many.
"""

import asyncio
import contextlib
import logging
import socket
from typing import Final

from tracker.counters import Counters
from tracker.messages import pack_address
from tracker.swarm import family_of
from tracker.udp_answers import UdpAnswers

__all__ = ["UdpFrontEnd"]

_LOG: Final = logging.getLogger("tracker")

_MOST_AT_ONCE: Final = 128
"""Datagrams answered before the event loop has its turn: one or two milliseconds."""

_DATAGRAM_BYTES: Final = 2048
"""More than any request; of a longer datagram only this much is read, and it is refused."""

_MOST_SOURCES: Final = 50_000
"""Addresses kept in packed form: about 10 MB."""

_RECEIVE_BUFFER_BYTES: Final = 4 << 20


class UdpFrontEnd:
    """Answers on one socket until it is closed.

    Args:
        sock: bound, non-blocking; closed by `close`.
        answers: makes the answers.
        counters: where bytes are counted.
    """

    def __init__(self, sock: socket.socket, answers: UdpAnswers, counters: Counters) -> None:
        self._sock = sock
        self._answers = answers
        self._counters = counters
        self._buffer = bytearray(_DATAGRAM_BYTES)
        self._loop = asyncio.get_running_loop()
        self._sources: dict[str, tuple[bytes, int]] = {}
        with contextlib.suppress(OSError):  # the system's own size will do
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        self._loop.add_reader(sock, self._drain)

    def close(self) -> None:
        """Stop answering."""
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def _drain(self) -> None:
        now = self._loop.time()
        receive, send, buffer = self._sock.recvfrom_into, self._sock.sendto, self._buffer
        make, counters, sources = self._answers.answer, self._counters, self._sources
        received = sent = 0
        for _ in range(_MOST_AT_ONCE):
            try:
                size, source = receive(buffer)
            except OSError:  # nothing more to read, or the report of an answer that did not arrive
                break
            received += size
            known = sources.get(source[0]) or self._look_up(source[0])
            if known is None:
                continue
            try:
                answer = make(buffer, size, known, now)
            except Exception:  # noqa: BLE001  (a defect of ours: its traceback is for the operator)
                _LOG.exception("an answer failed")
                continue
            if answer is not None:
                try:
                    sent += send(answer, source)
                except OSError:
                    counters.udp_unsent += 1
        counters.udp_bytes_received += received
        counters.udp_bytes_sent += sent

    def _look_up(self, text: str) -> tuple[bytes, int] | None:
        """A source's packed address and family; None if nobody can be there."""
        address = pack_address(text)
        if address is None:
            return None
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
        found = self._sources[text] = (address, family_of(address))
        return found
