"""Sessions and films in them, closed again whatever happens."""

import asyncio
import itertools
from dataclasses import dataclass

import libtorrent as lt
import numpy as np
import pytest

from tests.toast.swarm.world import Recorder, StockPeer
from toast.swarm import FilmSwarm, Metainfo, SessionSettings, SwarmSession

_HOSTS = (f"127.43.{a}.{b}" for a, b in itertools.product(range(250), range(1, 250)))


@dataclass
class Joined:
    """One of our sessions with one film in it, and all that it told."""

    session: SwarmSession
    swarm: FilmSwarm
    told: Recorder
    address: tuple[str, int]
    closed: bool = False

    async def close(self):
        """Leave; everything is flushed afterwards."""
        if not self.closed:
            self.closed = True
            self.swarm.close()
            await self.session.close()


class Tap:
    """Passes alerts on to a film, and knows when libtorrent has looked at its file."""

    def __init__(self, swarm):
        self._swarm = swarm
        self.checked = asyncio.Event()

    def on_alert(self, alert):
        if isinstance(alert, lt.torrent_checked_alert):
            self.checked.set()
        self._swarm.on_alert(alert)


@pytest.fixture
async def join():
    """Make a session and join it to a film: `joined = await join(metainfo, folder)`."""
    opened: list[Joined] = []

    async def make(
        metainfo: Metainfo, folder, *, have=None, checked=True, layout=None, **settings
    ) -> Joined:
        host = next(_HOSTS)
        session = SwarmSession(SessionSettings(listen_host=host, **settings))
        await session.wait_listening()
        told = Recorder()
        folder.mkdir(exist_ok=True)
        if have is None:
            have = np.zeros(metainfo.geometry.pieces, dtype=np.bool_)
        swarm = FilmSwarm(session, metainfo, folder=folder, have=have, events=told, layout=layout)
        opened.append(Joined(session, swarm, told, (host, session.port)))
        tap = Tap(swarm)
        session.register(swarm._handle, tap)
        if checked:
            await asyncio.wait_for(tap.checked.wait(), 5)
        return opened[-1]

    yield make
    for joined in opened:
        await joined.close()


@pytest.fixture
async def stock():
    """Make a stock peer that has the film: `peer = stock(torrent, content, folder)`."""
    opened: list[StockPeer] = []

    def make(torrent, content, folder, **options) -> StockPeer:
        opened.append(StockPeer(torrent, content, folder, next(_HOSTS), **options))
        return opened[-1]

    yield make
    for peer in opened:
        await peer.close()
