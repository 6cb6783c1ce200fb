"""The port that several processes serve on: found free, and kept from others."""

import contextlib
import socket
from typing import Final, Self

from vodserver.errors import ServeError

__all__ = ["HeldPort"]

_PROBE_BACKLOG: Final = 1


class HeldPort:
    """A TCP port that sockets of this user may share (SO_REUSEPORT), as long as this is open.

    Nothing listens here: who connects before a worker listens is told that nobody does.

    Args:
        host: address or name.
        port: its number; 0 takes any free one.

    Attributes:
        port: its number.

    Raises:
        ServeError: somebody has it, or the address is not one of this machine's.
    """

    def __init__(self, host: str, port: int) -> None:
        self._sockets: list[socket.socket] = []
        self.port = port
        try:
            found = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, address in dict.fromkeys((each[0], each[4][0]) for each in found):
                _check_free(family, str(address), self.port)
                self._hold(family, str(address))
        except (OSError, OverflowError, UnicodeError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise ServeError(
                f"cannot serve on {host} port {port}: {reason}; "
                "choose another with --port or --host"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others have it."""
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    def _hold(self, family: int, address: str) -> None:
        held = _make(family)
        self._sockets.append(held)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((address, self.port))
        self.port = held.getsockname()[1]


def _make(family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        with contextlib.suppress(OSError):
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return made


def _check_free(family: int, address: str, port: int) -> None:
    """Bind and listen as one who shares with nobody: another server of this user would let us in.

    Raises:
        OSError: it is not free.
    """
    if port:
        with contextlib.closing(_make(family)) as probe:
            probe.bind((address, port))
            probe.listen(_PROBE_BACKLOG)
