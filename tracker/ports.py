"""Sockets to listen on: TCP, and UDP with the same port number, for every address of a host."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tracker.errors import TrackerError
from tracker.settings import TrackerSettings

__all__ = ["Ports", "adopt_ports", "bind_ports"]

_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Ports:
    """Bound sockets.

    Attributes:
        streams: TCP, not listening yet.
        datagrams: UDP; empty where that is off.
    """

    streams: tuple[socket.socket, ...]
    datagrams: tuple[socket.socket, ...]

    @property
    def all(self) -> tuple[socket.socket, ...]:
        """Every one of them."""
        return (*self.streams, *self.datagrams)

    def close(self) -> None:
        """Let go of all."""
        for sock in self.all:
            sock.close()


async def bind_ports(settings: TrackerSettings, *, shared: bool = False) -> Ports:
    """Take the port.

    Args:
        settings: `host`, `port` and `udp`.
        shared: whether other processes of this user listen on the same port, each with sockets of
            its own, among which the system divides what comes.

    Raises:
        TrackerError: the address is not this machine's, or the port is taken.
    """
    host = None if settings.host == "*" else settings.host
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(settings, error) from error
    places = list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))
    for attempt in range(_TRIES):
        try:
            return _bind(places, settings, shared=shared)
        except OSError as error:
            # A free TCP port was taken on UDP: another may be free on both.
            if settings.port or attempt == _TRIES - 1:
                raise _cannot_listen(settings, error) from error
    raise AssertionError


def adopt_ports(descriptors: list[int]) -> Ports:
    """Sockets that another process has bound, by their file descriptors here."""
    sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    for sock in sockets:
        sock.setblocking(False)
    return Ports(
        tuple(sock for sock in sockets if sock.type == socket.SOCK_STREAM),
        tuple(sock for sock in sockets if sock.type == socket.SOCK_DGRAM),
    )


def _bind(
    places: Sequence[tuple[socket.AddressFamily, str]], settings: TrackerSettings, *, shared: bool
) -> Ports:
    with contextlib.ExitStack() as opened:
        streams: list[socket.socket] = []
        datagrams: list[socket.socket] = []
        port = settings.port
        for family, address in places:
            kinds = [(socket.SOCK_STREAM, streams)]
            if settings.udp:
                kinds.append((socket.SOCK_DGRAM, datagrams))
            for kind, sockets in kinds:
                sock = opened.enter_context(socket.socket(family, kind))
                _prepare(sock, shared=shared)
                sock.bind((address, port))
                port = sock.getsockname()[1]
                sockets.append(sock)
        opened.pop_all()
        return Ports(tuple(streams), tuple(datagrams))


def _prepare(sock: socket.socket, *, shared: bool) -> None:
    sock.setblocking(False)
    if sock.type == socket.SOCK_STREAM:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def _cannot_listen(settings: TrackerSettings, error: OSError | UnicodeError) -> TrackerError:
    reason = (getattr(error, "strerror", None) or str(error)).rpartition(": ")[2]
    return TrackerError(
        f"cannot listen on {settings.host}:{settings.port}: {reason.lower()}; "
        "choose another --host or --port"
    )
