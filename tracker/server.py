"""One tracker that listens: HTTP and UDP on the same port number, one memory behind both."""

import asyncio
import contextlib
import dataclasses
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import numpy as np

from tracker.connection_ids import SECRET_BYTES, ConnectionIds
from tracker.connections import ConnectionGate
from tracker.errors import TrackerError
from tracker.http import HttpAnswers
from tracker.passkeys import Passkeys
from tracker.permitted import read_permitted
from tracker.service import Service
from tracker.settings import TrackerSettings
from tracker.udp import UdpFrontEnd
from tracker.udp_answers import UdpAnswers
from tracker.upkeep import keep_permitted, keep_snapshot, read_snapshot, write_snapshot

__all__ = ["TrackerServer", "serve_tracker"]

_TRIES: Final = 20
_BACKLOG: Final = 512


class TrackerServer:
    """One tracker that is listening.

    Attributes:
        url: where it listens, such as `http://127.0.0.1:6969`.
        service: who answers.
        answers: the routes.
        gate: its TCP connections.
    """

    def __init__(self, settings: TrackerSettings, rng: np.random.Generator) -> None:
        self.url = ""
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._settings = settings
        self.service = Service(settings, rng, self._started)
        self.answers = HttpAnswers(self.service, self._loop.time, self.statistics)
        self.gate = ConnectionGate(settings, self.answers.respond)

    @property
    def announce_url(self) -> str:
        """What goes into a torrent as its `announce`."""
        return f"{self.url}/announce"

    @property
    def udp_announce_url(self) -> str | None:
        """The same for UDP; None where it is off."""
        return f"udp{self.announce_url[4:]}" if self._settings.udp else None

    def statistics(self) -> dict[str, float]:
        """What `/status` shows: counters since the start, and what is remembered now."""
        now = self._loop.time()
        swarms = self.service.swarms
        swarms.expire(now)
        counters = dataclasses.asdict(self.service.counters)
        return {
            **counters,
            "bytes_sent": self.gate.bytes_sent + self.service.counters.udp_bytes_sent,
            "connections_accepted": self.gate.accepted,
            "connections_refused": self.gate.refused,
            "connections_timed_out": self.gate.timed_out,
            "connections_open": self.gate.open,
            "torrents": swarms.torrents,
            "peers": swarms.peers,
            "uptime_seconds": round(now - self._started, 3),
        }


@asynccontextmanager
async def serve_tracker(
    settings: TrackerSettings,
    seed: int,
    *,
    films: Path | None = None,
    snapshot: Path | None = None,
    passkeys: Passkeys | None = None,
) -> AsyncIterator[TrackerServer]:
    """Listen until the block is left.

    Args:
        settings: where to listen, and all limits.
        seed: of the random samples in the answers.
        films: list of the films that are served (`tracker.permitted`); None: any.
        snapshot: where the memory is kept over restarts; None: nowhere.
        passkeys: who is answered; None: anyone.

    Raises:
        TrackerError: the address cannot be listened on, or the list cannot be read.
    """
    server = TrackerServer(settings, np.random.default_rng(seed))
    server.service.passkeys = passkeys
    swarms = server.service.swarms
    ids = ConnectionIds(secrets.token_bytes(SECRET_BYTES))
    if films is not None:
        swarms.permit(read_permitted(films))
    if snapshot is not None:
        read_snapshot(swarms, snapshot)
    with contextlib.ExitStack() as stack:
        streams, datagrams = await _bind(settings, stack)
        loop = asyncio.get_running_loop()
        for sock in datagrams:
            front = UdpFrontEnd(sock, UdpAnswers(server.service, ids), server.service.counters)
            stack.callback(front.close)
        listeners = [
            await loop.create_server(server.gate, sock=sock, backlog=_BACKLOG) for sock in streams
        ]
        server.url = _url(listeners[0])
        chores = [
            asyncio.create_task(chore)
            for chore in (
                *([keep_permitted(swarms, films)] if films else ()),
                *([keep_snapshot(swarms, snapshot, settings.snapshot_seconds)] if snapshot else ()),
            )
        ]
        try:
            yield server
        finally:
            for chore in chores:
                chore.cancel()
            await asyncio.gather(*chores, return_exceptions=True)
            if snapshot is not None:
                write_snapshot(swarms, snapshot)
            for listener in listeners:
                listener.close()
            server.gate.close()
            for listener in listeners:
                await listener.wait_closed()


async def _bind(
    settings: TrackerSettings, stack: contextlib.ExitStack
) -> tuple[list[socket.socket], list[socket.socket]]:
    """Sockets for every address of the host: TCP, and UDP on the same port number."""
    host = None if settings.host == "*" else settings.host
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(settings, error) from error
    places = list(dict.fromkeys((family, address[0]) for family, _, _, _, address in found))
    for attempt in range(_TRIES):
        opened = contextlib.ExitStack()
        try:
            streams: list[socket.socket] = []
            datagrams: list[socket.socket] = []
            port = settings.port
            for family, address in places:
                kinds = [(socket.SOCK_STREAM, streams)]
                if settings.udp:
                    kinds.append((socket.SOCK_DGRAM, datagrams))
                for kind, sockets in kinds:
                    sock = opened.enter_context(socket.socket(family, kind))
                    _prepare(sock)
                    sock.bind((str(address), port))
                    port = sock.getsockname()[1]
                    sockets.append(sock)
        except OSError as error:
            opened.close()
            # A free TCP port was taken on UDP: another may be free on both.
            if settings.port or attempt == _TRIES - 1:
                raise _cannot_listen(settings, error) from error
            continue
        stack.push(opened)
        return streams, datagrams
    raise AssertionError


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    if sock.type == socket.SOCK_STREAM:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def _cannot_listen(settings: TrackerSettings, error: OSError | UnicodeError) -> TrackerError:
    reason = (getattr(error, "strerror", None) or str(error)).rpartition(": ")[2]
    return TrackerError(
        f"cannot listen on {settings.host}:{settings.port}: {reason.lower()}; "
        "choose another --host or --port"
    )


def _url(listener: asyncio.Server) -> str:
    host, port = listener.sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
