"""The HTTP server that players open: ranges of a film that is still arriving."""

import asyncio
import contextlib
import ipaddress
import os
import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, cast
from urllib.parse import quote

from aiohttp import web

from toast.common.errors import ToastError
from toast.common.ranges import RangePlan, plan_range
from toast.gateway.access import AccessRules
from toast.gateway.errors import GatewayError
from toast.gateway.source import ByteStream, FilmSource

__all__ = ["Gateway", "GatewaySettings"]

_METHODS: Final = "GET, HEAD, OPTIONS"
_DLNA: Final = {
    # Byte seeking allowed, no conversion: what a television wants to read before it seeks.
    "transferMode.dlna.org": "Streaming",
    "contentFeatures.dlna.org": "DLNA.ORG_OP=01;DLNA.ORG_CI=0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """How much the gateway gives to whom."""

    max_connections: int = 32
    """Connections at a time, idle ones included; further ones are closed at once. A player opens
    two to four, and a browser six."""
    write_bytes: int = 256 * 1024
    """Most that is handed to a connection before waiting until the player has taken it."""
    keep_alive_seconds: float = 30.0
    """How long an idle connection stays open."""
    closing_seconds: float = 0.5
    """How long `close` lets running answers finish."""


class Gateway:
    """Serves one film over HTTP on this machine.

    Use as an async context manager, or call `start` and `close`.

    Args:
        source: the film.
        host: IP address to listen on; not a name, so that nothing is left to a resolver.
        port: 0 takes any free one.
        settings: bounds.
    """

    def __init__(
        self,
        source: FilmSource,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        settings: GatewaySettings | None = None,
    ) -> None:
        self._source = source
        self._host = host
        self._port = port
        self._settings = settings or GatewaySettings()
        self._rules = AccessRules(host)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._bytes_sent = 0
        self._readers = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def url(self) -> str:
        """Where a player finds the film, once started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/{quote(self._source.film_name, safe='')}"

    @property
    def bytes_sent(self) -> int:
        """Film bytes handed to players so far."""
        return self._bytes_sent

    @property
    def readers(self) -> int:
        """Answers that are being sent now."""
        return self._readers

    async def wait_idle(self) -> None:
        """Wait until no answer is being sent, and what was sent has left this process.

        For a viewing that ends while a player still reads the last seconds.
        """
        await self._idle.wait()

    async def start(self) -> None:
        """Listen.

        Raises:
            GatewayError: the address or the port cannot be had.
        """
        application = web.Application(client_max_size=1024)
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            # A player that leaves must end the wait for bytes which nobody will read.
            handler_cancellation=True,
            keepalive_timeout=self._settings.keep_alive_seconds,
            shutdown_timeout=self._settings.closing_seconds,
        )
        await self._runner.setup()
        try:
            ipaddress.ip_address(self._host)
            self._server = await asyncio.get_running_loop().create_server(
                self._admit, self._host, self._port, backlog=self._settings.max_connections
            )
        except (OSError, OverflowError, ValueError) as error:
            await self.close()
            raise GatewayError(_why_deaf(self._host, self._port, error)) from error
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and end every answer; does nothing if not started."""
        server, self._server = self._server, None
        runner, self._runner = self._runner, None
        if server is not None:
            server.close()
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _admit(self) -> asyncio.BaseProtocol:
        """The protocol of a new connection: aiohttp's, or a closed door when the house is full."""
        server = self._runner.server if self._runner else None
        if server is None or len(server.connections) >= self._settings.max_connections:
            return _ClosedDoor()
        return server()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = request.headers
        origins = headers.getall("Origin", [])
        refusal = self._rules.refusal(
            headers.getall("Host", []), origins, headers.get("Sec-Fetch-Site")
        )
        if refusal is not None:
            return _line(403, refusal)
        shared = dict(self._rules.cors_headers(origins[0] if origins else None))
        if request.path != f"/{self._source.film_name}":
            return _line(404, f"there is one film here: {self.url}", shared)
        if request.method == "OPTIONS":
            shared |= {
                "Allow": _METHODS,
                "Access-Control-Allow-Methods": _METHODS,
                "Access-Control-Allow-Headers": "Range, If-Range",
            }
            return web.Response(status=204, headers=shared)
        if request.method not in {"GET", "HEAD"}:
            return _line(405, "a film can only be read", shared | {"Allow": _METHODS})
        plan = plan_range(
            request.method,
            {name: ", ".join(headers.getall(name)) for name in headers},
            length=self._source.film_bytes,
            etag=self._source.etag,
        )
        shared |= plan.headers
        shared |= {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if plan.status in {200, 206}:
            shared["Content-Type"] = self._source.content_type
            shared |= _DLNA
        return await self._send(request, plan, shared)

    async def _send(
        self, request: web.Request, plan: RangePlan, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=plan.status, headers=headers)
        if plan.start >= plan.end:
            await response.prepare(request)
            await response.write_eof()
            return response
        self._readers += 1
        self._idle.clear()
        try:
            return await self._send_film(request, response, plan)
        except ConnectionError:
            return response  # the player left
        finally:
            self._readers -= 1
            if not self._readers:
                self._idle.set()

    async def _send_film(
        self, request: web.Request, response: web.StreamResponse, plan: RangePlan
    ) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            return response  # the player left before its answer began
        # Wait until the kernel has everything, not only most of it: then "sent" means sent.
        cast("asyncio.WriteTransport", transport).set_write_buffer_limits(high=0)
        missing = plan.end - plan.start
        try:
            async with contextlib.aclosing(self._source.read(plan.start, plan.end)) as stream:
                # Only when the first bytes are there is it known that this can be a 200 or 206.
                first = await anext(stream, b"")
                await response.prepare(request)
                missing -= await self._write(response, first, missing)
                missing = await self._pass_on(stream, response, missing)
        except ToastError as error:
            if not response.prepared:
                return _line(503, str(error), {"Retry-After": "1"})
        if missing:
            # Fewer bytes than promised: break the connection, so that no player takes it for whole.
            transport.abort()
        else:
            await response.write_eof()
        return response

    async def _pass_on(self, stream: ByteStream, response: web.StreamResponse, missing: int) -> int:
        """Send what the stream gives; returns how many bytes it still owes at its end."""
        while missing and (chunk := await anext(stream, None)) is not None:
            missing -= await self._write(response, chunk, missing)
        return missing

    async def _write(self, response: web.StreamResponse, chunk: bytes, limit: int) -> int:
        """Send a chunk, but no more than `limit`, at the pace at which the player takes it."""
        view = memoryview(chunk)[:limit]
        for at in range(0, len(view), self._settings.write_bytes):
            part = view[at : at + self._settings.write_bytes]
            await response.write(part)
            self._bytes_sent += len(part)
        return len(view)


class _ClosedDoor(asyncio.Protocol):
    """Closes a connection as soon as it is made."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _line(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=headers)


def _why_deaf(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return (
            f"the gateway cannot listen on {host} port {port} ({os.strerror(error.errno).lower()}):"
            " choose another port, or 0 for any free one"
        )
    return f"the gateway cannot listen on '{host}' port {port}: give an IP address and a port"
