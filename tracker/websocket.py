"""The relay's sockets: browsers, each with one WebSocket that is bounded in bytes and in time."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import WSMsgType, web

from tracker.connections import ConnectionGate
from tracker.counters import Counters
from tracker.errors import RequestError, TrackerError
from tracker.messages import pack_address
from tracker.service import Service
from tracker.settings import TrackerSettings
from tracker.swarm import family_of, key_of

__all__ = ["serve_browsers"]

_LOG: Final = logging.getLogger("tracker")
_HEARTBEAT_SECONDS: Final = 30.0
_SEND_SECONDS: Final = 10.0
_REFUSE_SECONDS: Final = 0.001
_MOST_WAITING: Final = 64
"""Messages kept for a browser that does not read: each may be an offer."""


class _Browser:
    """One WebSocket."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        transport: asyncio.BaseTransport | None,
        counters: Counters,
    ) -> None:
        self.socket = socket
        self._transport = transport
        self._counters = counters
        self._waiting: asyncio.Queue[str] = asyncio.Queue(_MOST_WAITING)

    def send(self, message: dict[str, object]) -> None:
        try:
            self._waiting.put_nowait(json.dumps(message))
        except asyncio.QueueFull:
            self._hang_up()  # it does not read: nor would it hear a farewell

    async def pour(self) -> None:
        """Send what waits, until the browser does not take it."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            while True:
                text = await self._waiting.get()
                async with asyncio.timeout(_SEND_SECONDS):
                    await self.socket.send_str(text)
                # A frame's head is four bytes for all but the shortest texts (RFC 6455).
                self._counters.browser_bytes_sent += len(text.encode()) + 4
        self._hang_up()

    def _hang_up(self) -> None:
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()


class _Relaying:
    """The relay behind its sockets."""

    def __init__(self, service: Service, gate: ConnectionGate, clock: Callable[[], float]) -> None:
        self._service = service
        self._relay = service.relay
        self._gate = gate
        self._clock = clock
        self.conversing: set[asyncio.BaseTransport] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        address = pack_address(request.remote or "")
        if address is None or not self._gate.admit(address):
            raise web.HTTPServiceUnavailable(text="there are too many connections\n")
        try:
            try:
                self._service.check(request.rel_url.raw_query_string.encode())
            except RequestError as error:
                raise web.HTTPForbidden(text=f"{error}\n") from error
            transport = request.transport
            socket = web.WebSocketResponse(
                heartbeat=_HEARTBEAT_SECONDS,
                max_msg_size=self._service.settings.max_browser_message_bytes,
                compress=False,
            )
            await socket.prepare(request)
            if transport is not None:
                self.conversing.add(transport)
            try:
                await self._converse(_Browser(socket, transport, self._service.counters), address)
            finally:
                self.conversing.discard(transport)
            return socket
        finally:
            self._gate.release(address)

    async def _converse(self, browser: _Browser, address: bytes) -> None:
        pouring = asyncio.create_task(browser.pour())
        try:
            async for message in browser.socket:
                if message.type is not WSMsgType.TEXT:
                    continue
                self._hear(browser, address, message.data)
                # Its messages are read one by one, and no faster than others are heard.
                await asyncio.sleep(0)
        finally:
            self._relay.leave(browser)
            pouring.cancel()
            await asyncio.gather(pouring, return_exceptions=True)

    def _hear(self, browser: _Browser, address: bytes, text: str) -> None:
        service = self._service
        service.counters.browser_messages += 1
        try:
            service.admit(family_of(address), key_of(address, 0), self._clock())
            for to, message in self._relay.hear(browser, text):
                assert isinstance(to, _Browser)
                to.send(message)
        except RequestError as error:
            service.counters.failures += 1
            browser.send({"action": "announce", "failure reason": str(error)})


class _Doors:
    """Connections from the moment on at which they are made: a browser has one request to make.

    aiohttp waits for it as long as it takes. Who has none, or makes another than ours, is hung up
    on after `idle_timeout_seconds`, and at once where `max_connections` others wait, too.

    Args:
        server: makes aiohttp's side of a connection.
        limits: of the tracker.
        conversing: transports of those that have become WebSockets.
    """

    def __init__(
        self, server: web.Server, limits: TrackerSettings, conversing: set[asyncio.BaseTransport]
    ) -> None:
        self._server = server
        self._limits = limits
        self._conversing = conversing
        self._waiting = 0
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> asyncio.Protocol:
        """One more connection (the protocol factory of `loop.create_server`)."""
        protocol = self._server()
        self._waiting += 1
        crowded = self._waiting > self._limits.max_connections
        seconds = _REFUSE_SECONDS if crowded else self._limits.idle_timeout_seconds
        self._loop.call_later(seconds, self._look, protocol)
        return protocol

    def _look(self, protocol: web.RequestHandler) -> None:
        self._waiting -= 1
        transport = protocol.transport
        if transport is not None and transport not in self._conversing:
            transport.abort()


@asynccontextmanager
async def serve_browsers(
    service: Service, gate: ConnectionGate, host: str, port: int
) -> AsyncIterator[str]:
    """Relay between browsers until the block is left; yields the URL for torrents.

    Args:
        service: limits, passkeys and counters, and who is in which swarm.
        gate: counts connections, those of HTTP included.
        host: to listen on; `*` is all of this machine's.
        port: to listen on; 0: any free one.

    Raises:
        TrackerError: the address cannot be listened on.
    """
    clock = asyncio.get_running_loop().time
    app = web.Application()
    relaying = _Relaying(service, gate, clock)
    for path in ("/", "/announce"):
        app.router.add_get(path, relaying.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    assert runner.server is not None
    doors = _Doors(runner.server, service.settings, relaying.conversing)
    listener: asyncio.Server | None = None
    try:
        try:
            listener = await asyncio.get_running_loop().create_server(
                doors, None if host == "*" else host, port
            )
        except (OSError, UnicodeError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).rpartition(": ")[2].lower()
            raise TrackerError(
                f"cannot listen for browsers on {host}:{port}: {reason}; "
                "choose another --websocket port"
            ) from error
        name, bound = listener.sockets[0].getsockname()[:2]
        yield f"ws://[{name}]:{bound}/announce" if ":" in name else f"ws://{name}:{bound}/announce"
    finally:
        if listener is not None:
            listener.close()
        await runner.cleanup()
