"""Viewers of tiny films with real servers, trackers and peers around them, all on loopback."""

import asyncio
import contextlib
import hashlib
import itertools
from pathlib import Path

import aiohttp
import bencode2
import numpy as np
import pytest
from aiohttp import web

from tests.toast.origin.server import FilmServer
from tests.toast.swarm.world import StockPeer, make_torrent, random_film
from toast.common import blockhashes
from toast.common.timemap import TimeMap
from toast.origin import OriginClient, OriginSettings
from toast.policy.neighbours import create_neighbours
from toast.swarm import SessionSettings, SwarmSession, parse_metainfo
from toast.viewer import Viewer, ViewerSettings
from toast.viewer.neighbourhood import Neighbourhood

FILM = random_film(1_000_000)
SHA256 = hashlib.sha256(FILM).hexdigest()
HASTY = OriginSettings(first_retry_seconds=0.05, most_retry_seconds=0.1, silence_seconds=1.0)
_HOSTS = (f"127.46.{a}.{b}" for a, b in itertools.product(range(250), range(1, 250)))


def next_host() -> str:
    return next(_HOSTS)


class Tracker:
    """Answers every announce with the same peers, and keeps what it was told."""

    def __init__(self) -> None:
        self.peers: list[dict] = []
        self.announces: list[dict] = []
        self.callers: list[str] = []
        self.told = asyncio.Event()
        self.failure: bytes | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/announce", self._announce)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, next_host(), 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/announce"

    async def stop(self) -> None:
        await self._runner.cleanup()

    def add(self, address, **facts) -> None:
        host, port = address
        known = {key.replace("_", " ").encode(): value for key, value in facts.items()}
        self.peers.append({b"ip": host.encode(), b"port": port} | known)

    async def _announce(self, request: web.Request) -> web.Response:
        self.announces.append(dict(request.query))
        self.callers.append(request.remote)
        self.told.set()
        if self.failure is not None:
            return web.Response(body=bencode2.bencode({b"failure reason": self.failure}))
        return web.Response(body=bencode2.bencode({b"interval": 60, b"peers": self.peers}))

    def events(self) -> list[str]:
        return [announce.get("event", "") for announce in self.announces]


class World:
    """A film, its server, a tracker, peers; and viewers of it."""

    def __init__(self, tmp_path: Path, stack: contextlib.AsyncExitStack) -> None:
        self.folder = tmp_path / "films"
        self.server = FilmServer(FILM, next_host())
        self.server.latency = 0.02
        self.tracker = Tracker()
        self._tmp_path = tmp_path
        self._stack = stack
        self._peers = 0

    async def start(self) -> None:
        await self.server.start()
        self._stack.push_async_callback(self.server.stop)
        await self.tracker.start()
        self._stack.push_async_callback(self.tracker.stop)
        self.http = await self._stack.enter_async_context(
            aiohttp.ClientSession(auto_decompress=False)
        )

    @property
    def path(self) -> Path:
        return self.folder / "film.mp4"

    def torrent(self, seconds: float | None = 1.0, *, hashes: bool = False) -> bytes:
        timemap = None if seconds is None else TimeMap.constant(len(FILM), seconds)
        url = f"{self.server.root}/hashes" if hashes else None
        return make_torrent(FILM, timemap=timemap, piece_bytes=32 * 1024, hashes_url=url)

    async def session(self, **settings) -> SwarmSession:
        session = SwarmSession(SessionSettings(listen_host=next_host(), **settings))
        self._stack.push_async_callback(session.close)
        await session.wait_listening()
        return session

    async def peer(self, content: bytes = FILM, *, announced: bool = True, **options) -> StockPeer:
        """A stock peer that claims to have everything; the tracker knows it."""
        self._peers += 1
        folder = self._tmp_path / f"peer{self._peers}"
        peer = StockPeer(self.torrent(), content, folder, next_host(), **options)
        self._stack.push_async_callback(peer.close)
        if announced:
            fingerprint = options.get("fingerprint", "-LT20F0-").encode()
            self.tracker.add(peer.address, complete=1, peer_id=fingerprint + b"x" * 12)
        return peer

    async def viewer(
        self,
        *,
        seconds: float | None = 1.0,
        origin: bool = True,
        tracker: bool = True,
        folder: str = "films",
        hashes: bool = False,
        **settings,
    ) -> Viewer:
        """A viewer in a session of its own, opened."""
        metainfo = parse_metainfo(self.torrent(seconds, hashes=hashes))
        self.server.hashes = blockhashes.leaves(FILM)
        loop = asyncio.get_running_loop()
        rng = np.random.default_rng(1)
        session = await self.session()
        neighbourhood = Neighbourhood(
            session,
            http=self.http,
            trackers=(self.tracker.url,) if tracker else (),
            info_hash=metainfo.info_hash,
            policy=create_neighbours("everyone"),
            rng=rng,
            clock=loop.time,
        )
        client, leaves = (
            OriginClient(self.http, (url,), film_bytes=size, clock=loop.time, settings=HASTY)
            for url, size in (
                (self.server.url, len(FILM)),
                (f"{self.server.root}/hashes", len(self.server.hashes)),
            )
        )
        viewer = Viewer(
            metainfo,
            session=session,
            origin=client if origin else None,
            hashes=leaves,
            neighbourhood=neighbourhood,
            settings=ViewerSettings(folder=self._tmp_path / folder, **settings),
            rng=rng,
            clock=loop.time,
        )
        await viewer.open()
        return viewer


@pytest.fixture
async def world(tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        made = World(tmp_path, stack)
        await made.start()
        yield made


async def watch(viewer: Viewer, *, seconds: float = 15.0) -> dict:
    """Watch to the end and report."""
    async with asyncio.timeout(seconds):
        await viewer.run()
    return await viewer.report()
