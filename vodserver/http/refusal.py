"""What a client is told that cannot be let in."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

__all__ = ["Refusal"]

_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class Refusal(asyncio.Protocol):
    """Tells a client to come back later.

    Args:
        count: told how many bytes that costs.
        leave: called when it is over.
    """

    def __init__(self, count: Callable[[int], None], leave: Callable[["Refusal"], None]) -> None:
        self._count = count
        self._leave = leave
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say so, and hang up."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(_FULL)
        self._count(len(_FULL))
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's protocol
        """It is over."""
        self._leave(self)

    def cut(self) -> None:
        """Wait no longer for the client to take it."""
        if self._transport is not None:
            self._transport.abort()
