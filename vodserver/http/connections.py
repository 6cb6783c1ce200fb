"""Between the sockets and aiohttp: how many may connect, how long they may dawdle, what was sent.

Bytes are counted where they go to the socket, headers and all: this is what the server costs its
operator.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Final, cast

from vodserver.errors import ReadError
from vodserver.http.counted import CountedTransport, HttpStatistics, keep_little_under_way
from vodserver.http.fast import MAX_HEAD_BYTES, FastPath, FastRequest
from vodserver.http.limits import AddressLimit, Timeouts
from vodserver.http.refusal import Refusal
from vodserver.http.sender import FilmSource, Pacer, Sending, send_at_once
from vodserver.http.writable import Writable
from vodserver.store import Title

__all__ = ["Gate", "HttpStatistics"]

_SWEEP_SECONDS: Final = 0.25
_KEPT_SECONDS: Final = 0.1  # a connection that asks nothing, while others wait to be let in
_END_OF_HEAD: Final = b"\r\n\r\n"


class Gate:
    """Lets connections in, one protocol for each; a factory for the running loop's `create_server`.

    A connection is answered by the fast path as long as its requests are of that shape. From the
    first that is not, aiohttp has it.

    Args:
        make_protocol: makes aiohttp's protocol.
        limit: most connections at a time.
        timeouts: how long clients may dawdle.
        admit: asked with a new client's address whether it may connect; told by `leave` when it
            went. None: everybody may.
        fast: recognises the requests that need no detour; None: there are no such.
        source: where the films are that the fast path sends.
        chunk_bytes: most handed to a socket before others have their turn.
        observe: told of every answer of the fast path: the request, the client's address, bytes of
            the film that were sent, seconds.

    Attributes:
        closing: connections end with the answer that they are at.
    """

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        limit: int,
        timeouts: Timeouts,
        fast: FastPath | None = None,
        source: FilmSource | None = None,
        chunk_bytes: int = 1024 * 1024,
        admit: AddressLimit | None = None,
        observe: Callable[[FastRequest, str, int, float], None] | None = None,
    ) -> None:
        self.make_protocol = make_protocol
        self.timeouts = timeouts
        self.fast = fast
        self.source = source
        self.chunk_bytes = chunk_bytes
        self.observe = observe
        self.admit = admit
        self.writable = Writable()
        self._limit = limit
        self._open: set[_Connection] = set()
        self._idle: dict[_Connection, float] = {}  # the one that has been for longest first
        self._ending: set[_Connection] = set()
        self._refusals: set[Refusal] = set()
        self._empty = asyncio.Event()
        self._sweeping: asyncio.TimerHandle | None = None
        self.closing = False
        self._sent = 0
        self._accepted = 0
        self._refused = 0

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        if self.closing or (len(self._open) >= self._limit and not self._make_room()):
            return self.refuse()
        self._accepted += 1
        connection = _Connection(self)
        self._open.add(connection)
        if self._sweeping is None:
            self._sweep_later()
        return connection

    def _make_room(self) -> bool:
        """Close the connection that has been idle for longest; whether there is one."""
        connection, since = next(iter(self._idle.items()), (None, 0.0))
        if connection is None or asyncio.get_running_loop().time() - since < _KEPT_SECONDS:
            return False
        self.idle(connection, None)
        self._open.discard(connection)
        self._ending.add(connection)  # it is over, but is told so only later
        connection.cut()
        return True

    def idle(self, connection: "_Connection", since: float | None) -> None:
        """A connection waits for its next request since then; None: it no longer does."""
        self._idle.pop(connection, None)
        if since is not None:
            self._idle[connection] = since

    def refuse(self) -> Refusal:
        """A protocol that tells a client to come back later."""
        self._refused += 1
        refusal = Refusal(self.count, self.leave)
        self._refusals.add(refusal)
        return refusal

    def statistics(self) -> HttpStatistics:
        """What was done so far; bytes that still wait in our own memory are not counted."""
        waiting = sum(each.waiting_bytes for each in (*self._open, *self._ending))
        return HttpStatistics(self._sent - waiting, len(self._open), self._accepted, self._refused)

    def count(self, sent: int) -> None:
        """Count bytes handed to the network; negative for those lost with their connection."""
        self._sent += sent

    def leave(self, connection: "_Connection | Refusal") -> None:
        """Forget a connection that ended."""
        if isinstance(connection, _Connection):
            self._open.discard(connection)
            self._ending.discard(connection)
            self._idle.pop(connection, None)
        else:
            self._refusals.discard(connection)
        if not (self._open or self._ending or self._refusals):
            self._empty.set()

    async def close(self, *, grace_seconds: float = 0.0) -> None:
        """Cut every connection that is left, and wait until the last is gone.

        Args:
            grace_seconds: answers of the fast path that are under way get so long to end.
        """
        self.closing = True
        self._empty.clear()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in [each for each in self._open if not each.is_sending]:
            connection.cut()
        if any(each.is_sending for each in self._open):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await self._empty.wait()
        left: list[_Connection | Refusal] = [*self._open, *self._ending, *self._refusals]
        for last in left:
            last.cut()
        if self._open or self._ending or self._refusals:
            await self._empty.wait()
        self.writable.close()

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Cut those who dawdle. One timer for all: thousands of connections cost no timer each."""
        self._sweeping = None
        now = asyncio.get_running_loop().time()
        for connection in [each for each in self._open if each.is_late(now)]:
            connection.cut()
        if self._open:
            self._sweep_later()


class _Connection(asyncio.Protocol):
    """One connection: the fast path, until a request is not for it; then aiohttp's protocol."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self._inner: asyncio.Protocol | None = None
        self._transport: CountedTransport | None = None
        self._deadline: float | None = None
        self._buffer = bytearray()
        self._socket: socket.socket | None = None
        self._sending: Sending | None = None
        self._request: FastRequest | None = None
        self._began = 0.0
        self._peer = ""
        self._entered = False
        self._sent = 0
        self._reading = True
        self._ends = False
        self._drained: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes written that the kernel has not taken yet."""
        return 0 if self._transport is None else int(self._transport.get_write_buffer_size())

    @property
    def is_sending(self) -> bool:
        """Whether an answer of the fast path is under way."""
        return self._sending is not None

    def is_late(self, now: float) -> bool:
        """Whether the client has dawdled for too long."""
        if self._inner is not None and self._transport is not None and self._transport.written:
            return False  # something was answered, or is being: aiohttp's own clock runs
        return self._deadline is not None and now >= self._deadline

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        self._transport = CountedTransport(plain, self._gate.count, self)
        self._deadline = self._loop.time() + self._gate.timeouts.header_seconds
        keep_little_under_way(transport.get_extra_info("socket"))
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if isinstance(peer, tuple) else ""
        if self._gate.admit is not None:
            self._entered = self._gate.admit.enter(self._peer)
            if not self._entered:
                refusal = self._gate.refuse()
                plain.set_protocol(refusal)
                self._gate.leave(self)
                refusal.connection_made(plain)
                return
        if self._gate.fast is None or transport.get_extra_info("sslcontext") is not None:
            self._hand_over()

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)
            return
        if self._sending is None and not self._buffer and data.endswith(_END_OF_HEAD):
            self._answer(data)  # a request that came whole, and nothing else: no need to keep it
            return
        self._buffer += data
        if self._sending is None:
            self._next()
        elif len(self._buffer) > MAX_HEAD_BYTES and self._transport is not None:
            # Who sends on before the answer is through waits until it is.
            self._reading = False
            self._transport.pause_reading()

    def eof_received(self) -> bool | None:
        if self._inner is not None:
            return self._inner.eof_received()
        self._ends = True
        return self._sending is not None  # what was asked for is still sent

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._sending is not None:
            self._sending.cancel()
            if self._inner is None:
                self._observe()
            self._sending = None
            exc = exc or ConnectionAbortedError()
        for waiting in (self._drained, self._ended):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ConnectionResetError("the client is gone"))
        if self._transport is not None:
            self._transport.settle(exc)
            self._transport = None
        if self._socket is not None:
            self._gate.writable.leave(self._socket.fileno())
            self._socket.close()
            self._socket = None
        if self._inner is not None:
            self._inner.connection_lost(exc)
        if self._entered and self._gate.admit is not None:
            self._gate.admit.leave(self._peer)
        self._gate.leave(self)

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def own_socket(self) -> socket.socket | None:
        """The connection's socket, for writing past the transport; None once it is closed.

        A duplicate, since event loops keep the transport's own to themselves.
        """
        if self._socket is None and self._transport is not None:
            found = self._transport.get_extra_info("socket")
            if found is None or self._transport.is_closing():
                return None
            self._socket = socket.socket(fileno=os.dup(found.fileno()))
            self._socket.setblocking(False)
        return self._socket

    async def drained(self) -> None:
        """Wait until the kernel has all that was written to the transport.

        Raises:
            ConnectionError: the connection is gone.
        """
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._transport.set_write_buffer_limits(high=0)
        if self.waiting_bytes:
            self._drained = self._loop.create_future()
            try:
                await self._drained
            finally:
                self._drained = None

    async def send_film(
        self,
        source: FilmSource,
        title: Title,
        span: tuple[int, int],
        *,
        head: bytes,
        chunk_bytes: int,
        send_timeout: float,
        pacer: Pacer | None,
    ) -> None:
        """Send bytes [span) of a film past the transport, after all that was written to it.

        Raises:
            ConnectionError: the client went away.
            ReadError: the film cannot be read any further.
            TimeoutError: the client took nothing for `send_timeout` seconds.
        """
        await self.drained()
        sock = self.own_socket()
        if sock is None:
            raise ConnectionResetError("the client is gone")
        ended: asyncio.Future[None] = self._loop.create_future()
        heard = self._loop.time()

        def count(sent: int) -> None:
            nonlocal heard
            heard = self._loop.time()
            if self._transport is not None:
                self._transport.note_sent(sent)

        def done(error: Exception | None) -> None:
            if ended.done():
                return
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)

        sending = self._sending = Sending(
            source,
            title,
            *span,
            sock=sock,
            head=head,
            chunk_bytes=chunk_bytes,
            writable=self._gate.writable,
            count=count,
            done=done,
            pacer=pacer,
        )
        self._ended = ended
        try:
            sending.start()
            while not ended.done():
                left = heard + send_timeout - self._loop.time()
                if left <= 0 and sending.waits_for_client:
                    raise TimeoutError
                await asyncio.wait([ended], timeout=left if left > 0 else send_timeout)
            await ended
        finally:
            sending.cancel()
            self._sending = self._ended = None

    def _hand_over(self) -> None:
        """Let aiohttp have the connection, with what has come and was not answered."""
        self._gate.idle(self, None)
        self._inner = self._gate.make_protocol()
        self._inner.connection_made(cast("asyncio.Transport", self._transport))
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._inner.data_received(data)

    def _next(self) -> None:
        """Answer the next request that has come whole."""
        assert self._gate.fast is not None
        end = self._buffer.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if end >= len(_END_OF_HEAD):
            head = bytes(self._buffer[:end])
            del self._buffer[:end]
            self._answer(head)
        elif not self._gate.fast.may_be(self._buffer):
            self._hand_over()

    def _answer(self, data: bytes) -> None:
        """Answer what may be one whole request, if it is of the one shape."""
        gate, transport = self._gate, self._transport
        fast, source = gate.fast, gate.source
        assert fast is not None
        assert source is not None
        request = fast.parse(data, time.time(), self._request)
        # Nothing waits in the transport: only aiohttp writes to it, and then has all that comes.
        sock = None if request is None else self._socket or self.own_socket()
        if request is None or sock is None or transport is None:
            self._buffer[:0] = data
            self._hand_over()
            return
        self._request, self._sent, self._began = request, 0, self._loop.time()
        title, at, end, head = request[:4]
        stop = end if end - at <= gate.chunk_bytes else at + gate.chunk_bytes
        try:
            headed, sent, full = send_at_once(source, title, at, stop, (sock, head))
        except OSError as error:
            self._done(error)
            return
        at += sent
        self._sent = headed + sent
        transport.written += self._sent
        gate.count(self._sent)
        if at == end:
            if self._buffer or self._ends or gate.closing or not self._reading:
                self._done(None)
                return
            now = self._observe()
            self._deadline = now + gate.timeouts.keepalive_seconds
            gate.idle(self, now)
            return
        gate.idle(self, None)
        self._deadline = self._began + gate.timeouts.send_seconds
        self._sending = Sending(
            source,
            title,
            at,
            end,
            sock=sock,
            head=head[headed:],
            chunk_bytes=gate.chunk_bytes,
            writable=gate.writable,
            count=self._count,
            done=self._done,
        )
        self._sending.start(full=full or at == stop)

    def _count(self, sent: int) -> None:
        if self._transport is not None:
            self._transport.note_sent(sent)
        self._sent += sent
        self._deadline = self._loop.time() + self._gate.timeouts.send_seconds

    def _observe(self) -> float:
        """Tell of the answer that is over; the time now."""
        now = self._loop.time()
        if self._gate.observe is not None and self._request is not None:
            film = max(self._sent - len(self._request.head), 0)
            self._gate.observe(self._request, self._peer, film, now - self._began)
        return now

    def _done(self, error: Exception | None) -> None:
        """An answer is through, or cannot go on."""
        self._sending = None
        if self._transport is None:
            return
        if error is not None:
            if isinstance(error, ReadError) and not self._sent and self._request is not None:
                # Nothing has gone out yet: aiohttp's side says in words what is wrong.
                self._buffer[:0] = self._request.raw
                self._hand_over()
                return
            # The length is promised: only a cut connection says that the rest will not come.
            self._observe()
            self._transport.abort()
            return
        now = self._observe()
        if self._ends or self._gate.closing:
            self._transport.close()
            return
        self._deadline = now + self._gate.timeouts.keepalive_seconds
        self._gate.idle(self, None if self._buffer else now)
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()
        if self._buffer:
            # Not from here: a client that asks without end must not keep others from theirs.
            self._loop.call_soon(self._next_if_idle)

    def _next_if_idle(self) -> None:
        if self._sending is None and self._inner is None and self._transport is not None:
            self._next()
