"""One tracker that listens: HTTP and UDP on the same port number, one memory behind both."""

import asyncio
import contextlib
import dataclasses
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import numpy as np

from tracker.access_log import AccessLog
from tracker.connection_ids import SECRET_BYTES, ConnectionIds
from tracker.connections import ConnectionGate
from tracker.ending import end_tasks
from tracker.http import HttpAnswers
from tracker.log_writer import keep_log
from tracker.pages import GAUGES
from tracker.passkeys import Passkeys
from tracker.permitted import read_permitted
from tracker.ports import Ports, bind_ports
from tracker.service import Service
from tracker.settings import TrackerSettings
from tracker.sharing import Sharing
from tracker.siblings import SiblingPlace
from tracker.udp import UdpFrontEnd
from tracker.udp_answers import UdpAnswers
from tracker.upkeep import keep_permitted, keep_snapshot, read_snapshot, write_snapshot
from tracker.websocket import serve_browsers

__all__ = ["TrackerServer", "serve_tracker"]

_BACKLOG: Final = 512
_MOST_LINES: Final = 500_000
"""Of the log, between two writes: more than can be answered in that time."""
_KNOWN_TO_ALL: Final = GAUGES - {"connections_open"}


class TrackerServer:
    """One tracker that is listening.

    Attributes:
        url: where it listens, such as `http://127.0.0.1:6969`.
        service: who answers.
        answers: the routes.
        gate: its TCP connections.
        websocket_url: the announce URL of browsers; None: it does not serve them.
        sharing: its way to other trackers; None: there are none.
    """

    def __init__(self, settings: TrackerSettings, rng: np.random.Generator) -> None:
        self.url = ""
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._settings = settings
        self.service = Service(settings, rng, self._started)
        self.answers = HttpAnswers(self.service, self._loop.time, self.statistics)
        self.gate = ConnectionGate(settings, self.answers.respond)
        self.sharing: Sharing | None = None
        self.websocket_url: str | None = None

    @property
    def announce_url(self) -> str:
        """What goes into a torrent as its `announce`."""
        return f"{self.url}/announce"

    @property
    def udp_announce_url(self) -> str | None:
        """The same for UDP; None where it is off."""
        return f"udp{self.announce_url[4:]}" if self._settings.udp else None

    def statistics(self) -> dict[str, float]:
        """What `/status` shows: counters since the start, and what is remembered now.

        Where several processes answer on one port, it is of all of them together.
        """
        found = self.own_statistics()
        if self.sharing is not None:
            for others in self.sharing.counts_of_others():
                for name in found.keys() - _KNOWN_TO_ALL:
                    found[name] += others.get(name, 0.0)
            found |= self.sharing.statistics()
        return found

    def own_statistics(self) -> dict[str, float]:
        """The same of this process alone."""
        now = self._loop.time()
        swarms = self.service.swarms
        swarms.expire(now)
        counters = dataclasses.asdict(self.service.counters)
        return {
            **counters,
            "browser_offers": self.service.relay.offers,
            "browser_answers": self.service.relay.answers,
            "bytes_sent": self.gate.bytes_sent
            + self.service.counters.udp_bytes_sent
            + self.service.counters.browser_bytes_sent,
            "connections_accepted": self.gate.accepted,
            "connections_refused": self.gate.refused,
            "connections_timed_out": self.gate.timed_out,
            "connections_open": self.gate.open,
            "torrents": swarms.torrents,
            "peers": swarms.peers,
            "browsers": self.service.relay.peers,
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
    store: str | None = None,
    place: SiblingPlace | None = None,
    ports: Ports | None = None,
    websocket: int | None = None,
    log: Path | None = None,
) -> AsyncIterator[TrackerServer]:
    """Listen until the block is left.

    Args:
        settings: where to listen, and all limits.
        seed: of the random samples in the answers.
        films: list of the films that are served (`tracker.permitted`); None: any.
        snapshot: where the memory is kept over restarts; None: nowhere.
        passkeys: who is answered; None: anyone.
        store: URL of a store that other trackers of the same films use, too (`tracker.store`).
        place: which of several processes on one port this is; None: the only one.
        ports: where to listen, if that is bound already.
        log: file for a line of each request (`tracker.access_log`); None: nowhere.
        websocket: port for browsers (`tracker.relay`), 0: any free one; None: nowhere.

    Raises:
        TrackerError: the address cannot be listened on, the list cannot be read, or the store
            cannot be used.
    """
    server = TrackerServer(settings, np.random.default_rng(seed))
    server.service.passkeys = passkeys
    swarms = server.service.swarms
    ids = ConnectionIds(secrets.token_bytes(SECRET_BYTES) if place is None else place.secret)
    writes = snapshot is not None and (place is None or place.number == 0)  # all know the same
    if films is not None:
        server.service.permit(read_permitted(films))
    if snapshot is not None:
        read_snapshot(swarms, snapshot)
    async with contextlib.AsyncExitStack() as stack:
        ports = ports or await bind_ports(settings)
        stack.callback(ports.close)
        if store is not None or place is not None:
            server.sharing = Sharing(server.service, server.own_statistics)
            stack.push_async_callback(server.sharing.close)
            await server.sharing.start(place, store)
        if websocket is not None:
            server.websocket_url = await stack.enter_async_context(
                serve_browsers(server.service, server.gate, settings.host, websocket)
            )
        loop = asyncio.get_running_loop()
        for sock in ports.datagrams:
            front = UdpFrontEnd(sock, UdpAnswers(server.service, ids), server.service.counters)
            stack.callback(front.close)
        listeners = [
            await loop.create_server(server.gate, sock=sock, backlog=_BACKLOG)
            for sock in ports.streams
        ]
        server.url = _url(listeners[0])
        try:
            async with _chores(server.service, films, snapshot if writes else None, log):
                yield server
        finally:
            for listener in listeners:
                listener.close()
            server.gate.close()
            for listener in listeners:
                await listener.wait_closed()


@asynccontextmanager
async def _chores(
    service: Service, films: Path | None, snapshot: Path | None, log: Path | None
) -> AsyncIterator[None]:
    """What is done beside answering, as long as the block runs."""
    swarms, stop = service.swarms, asyncio.Event()
    chores: list[asyncio.Task[None]] = []
    if films is not None:
        chores.append(asyncio.create_task(keep_permitted(service, films)))
    if snapshot is not None:
        seconds = service.settings.snapshot_seconds
        chores.append(asyncio.create_task(keep_snapshot(swarms, snapshot, seconds)))
    logging: list[asyncio.Task[None]] = []
    if log is not None:
        service.log = AccessLog(_MOST_LINES)
        logging.append(asyncio.create_task(keep_log(service.log, log, stop)))
    try:
        yield
    finally:
        await end_tasks(chores)
        if snapshot is not None:
            write_snapshot(swarms, snapshot)
        stop.set()
        await asyncio.gather(*logging, return_exceptions=True)


def _url(listener: asyncio.Server) -> str:
    host, port = listener.sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
