"""A listening socket for an aiohttp application, with bounds on who comes in."""

import asyncio
import ipaddress
import os
import socket
from types import TracebackType
from typing import Self

from aiohttp import web

from toast.gateway.errors import GatewayError
from toast.gateway.settings import GatewaySettings

__all__ = ["Door"]


class Door:
    """Serves an application on one address. Use as an async context manager.

    Args:
        application: what answers.
        host: IP address to listen on; not a name, so that nothing is left to a resolver.
        port: 0 takes any free one.
        settings: bounds.

    Attributes:
        host: as given.
        port: the port that was taken, once started.
    """

    def __init__(
        self, application: web.Application, *, host: str, port: int, settings: GatewaySettings
    ) -> None:
        self.host = host
        self.port = port
        self._application = application
        self._settings = settings
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it is reached, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            GatewayError: the address or the port cannot be had.
        """
        self._runner = web.AppRunner(
            self._application,
            access_log=None,
            # A player that leaves must end the wait for bytes which nobody will read.
            handler_cancellation=True,
            keepalive_timeout=self._settings.keep_alive_seconds,
            shutdown_timeout=self._settings.closing_seconds,
        )
        await self._runner.setup()
        try:
            ipaddress.ip_address(self.host)
            self._server = await asyncio.get_running_loop().create_server(
                self._admit, self.host, self.port, backlog=self._settings.max_connections
            )
        except (OSError, OverflowError, ValueError) as error:
            await self.close()
            raise GatewayError(_why_deaf(self.host, self.port, error)) from error
        self.port = self._server.sockets[0].getsockname()[1]

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


class _ClosedDoor(asyncio.Protocol):
    """Closes a connection as soon as it is made."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _why_deaf(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return (
            f"the gateway cannot listen on {host} port {port} ({os.strerror(error.errno).lower()}):"
            " choose another port, or 0 for any free one"
        )
    return f"the gateway cannot listen on '{host}' port {port}: give an IP address and a port"
