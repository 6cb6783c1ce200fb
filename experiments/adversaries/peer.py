"""A peer on a real socket whose conduct can be chosen: it claims the film and waits for callers."""

import asyncio
import contextlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from experiments.adversaries.conducts import Conduct
from experiments.adversaries.errors import WireError
from experiments.adversaries.wire import (
    HANDSHAKE_BYTES,
    Handshake,
    Kind,
    MessageBuffer,
    Request,
    bitfield,
    pack,
    piece_head,
)
from toast.common.geometry import Geometry

__all__ = ["Address", "Peer", "SharedFilm"]

Address = tuple[str, int]
_MOST_REQUESTS = 2000
_MOST_CALLERS = 200
_HANDSHAKE_SECONDS = 10.0
_PART_BYTES = 1024


@dataclass(frozen=True, slots=True)
class SharedFilm:
    """A film that peers claim to have."""

    data: bytes
    geometry: Geometry
    info_hash: bytes

    def block(self, request: Request) -> bytes:
        """What an honest peer answers; empty where nothing is."""
        start = self.geometry.piece_start(request.piece) + request.start
        return self.data[start : start + request.size]


class Peer:
    """Serves one film to whoever calls, by its conduct.

    Args:
        film: what it claims to have, whole.
        conduct: how it behaves.
        host: the address to listen on; a port is found, and kept when it goes and comes back.
        uplink: bytes/second that it can send at the most; None: as fast as it can.
        clock: monotonic seconds.

    Attributes:
        peer_id: 20 bytes.
        callers: connections that got as far as a handshake.
        asked: requests received.
        sent_bytes: of blocks.
    """

    def __init__(
        self,
        film: SharedFilm,
        conduct: Conduct,
        host: str,
        *,
        uplink: float | None = None,
        clock: Callable[[], float],
    ) -> None:
        self.conduct = conduct
        self._rate = min(
            (rate for rate in (uplink, conduct.rate) if rate is not None), default=None
        )
        self.peer_id = b"-XX0001-" + secrets.token_hex(6).encode()
        self.callers = 0
        self.asked = 0
        self.sent_bytes = 0
        self._film = film
        self._host = host
        self._port = 0
        self._clock = clock
        self._free_at = 0.0
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._frozen = asyncio.Event()
        self._frozen.set()

    @property
    def address(self) -> Address:
        """Where it listens, or listened."""
        return self._host, self._port

    @property
    def is_listening(self) -> bool:
        """Whether it can be called."""
        return self._server is not None

    async def start(self) -> None:
        """Listen; on the port that it had before, if it had one."""
        self._frozen.set()
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Hang up on everybody, in the middle of a block if need be, and listen no more."""
        self._close_door()
        tasks = tuple(self._connections)
        for task, writer in self._connections.items():
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def freeze(self) -> None:
        """Lose power: nobody is told, connections stay as they are, and nothing moves on them."""
        self._close_door()
        self._frozen.clear()

    def _close_door(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= _MOST_CALLERS:
            writer.transport.abort()
            return
        self._connections[task] = writer
        sending: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                hello = Handshake.parse(await reader.readexactly(HANDSHAKE_BYTES))
            if hello.info_hash != self._film.info_hash:
                return
            self.callers += 1
            pieces = self._film.geometry.pieces
            writer.write(Handshake(hello.info_hash, self.peer_id).pack())
            writer.write(pack(Kind.BITFIELD, bitfield(range(pieces), pieces)))
            caller = _Caller(writer)
            sending = asyncio.create_task(self._send(caller))
            await self._listen(reader, caller)
        except (OSError, EOFError, WireError, TimeoutError, asyncio.CancelledError):
            pass  # the caller left, talks nonsense, or is hung up on: either way it is gone
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            del self._connections[task]
            writer.transport.abort()

    async def _listen(self, reader: asyncio.StreamReader, caller: "_Caller") -> None:
        messages = MessageBuffer()
        while data := await reader.read(64 * 1024):
            await self._frozen.wait()
            for message in messages.feed(data):
                if message.kind == Kind.INTERESTED and self.conduct.unchokes:
                    caller.unchoke = True
                elif message.kind == Kind.REQUEST and len(caller.wanted) < _MOST_REQUESTS:
                    self.asked += 1
                    caller.wanted[Request.parse(message.payload)] = None
                elif message.kind == Kind.CANCEL:
                    caller.wanted.pop(Request.parse(message.payload), None)
                else:
                    continue
                caller.more.set()

    async def _send(self, caller: "_Caller") -> None:
        """Answer requests in their order; other messages go between blocks, never within one."""
        with contextlib.suppress(OSError):
            while True:
                await caller.more.wait()
                if caller.unchoke:
                    caller.unchoke = False
                    caller.writer.write(pack(Kind.UNCHOKE))
                if not caller.wanted:
                    caller.more.clear()
                    continue
                request, _ = caller.wanted.popitem(last=False)
                block = self._film.block(request)
                if len(block) == request.size:
                    answer = piece_head(request) + await self.conduct.serve(request, block)
                    await self._write(caller.writer, answer)

    async def _write(self, writer: asyncio.StreamWriter, answer: bytes) -> None:
        rate = self._rate
        step = len(answer) if rate is None else _PART_BYTES
        for at in range(0, len(answer), step):
            part = answer[at : at + step]
            if rate is not None:
                now = self._clock()
                self._free_at = max(self._free_at, now) + len(part) / rate
                await asyncio.sleep(self._free_at - now)
            await self._frozen.wait()
            writer.write(part)
            self.sent_bytes += len(part)
            await writer.drain()


class _Caller:
    """A connection, and what is still to be said on it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.wanted: OrderedDict[Request, None] = OrderedDict()
        self.unchoke = False
        self.more = asyncio.Event()
