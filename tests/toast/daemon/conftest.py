"""A daemon inside the test: real library, session, sockets and disk, on loopback."""

import asyncio
import contextlib
import hashlib

import aiohttp
import pytest

from tests.toast.origin.server import FilmServer
from tests.toast.swarm.world import make_torrent, random_film
from tests.toast.viewer.conftest import next_host
from toast.common.timemap import TimeMap
from toast.daemon.service import Service
from toast.daemon.settings import DaemonSettings
from toast.swarm import SessionSettings, parse_metainfo

FILM = random_film(600_000)
SHA256 = hashlib.sha256(FILM).hexdigest()
DEAF = "http://127.0.0.1:9/announce"


def torrent(number=0, *, size=600_000, seconds=2.0, origins=(), name=None):
    film = random_film(size, number + 1)
    return make_torrent(
        film,
        name=name or f"film-{number}.mp4",
        piece_bytes=32 * 1024,
        timemap=TimeMap.constant(size, seconds),
        origins=origins,
        trackers=() if origins else (DEAF,),
    )


def id_of(data):
    return parse_metainfo(data).info_hash.hex()


async def eventually(condition):
    """Wait until something is so that nobody tells of: a file's name, a task's work."""
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


class House:
    """One daemon at a time on one state folder."""

    def __init__(self, state):
        self.state = state
        self.service = None
        self.http = None
        self._stack = contextlib.AsyncExitStack()

    async def open(self, rules=None, **settings):
        settings = {
            "port": 0,
            "refresh_seconds": 0.05,
            "linger_seconds": 0.2,
            "keep_seconds": 0.0,
        } | settings
        self.service = Service(
            DaemonSettings(state=self.state, **settings),
            SessionSettings(listen_host=next_host()),
            rules,
        )
        await self._stack.enter_async_context(self.service)
        self.http = await self._stack.enter_async_context(
            aiohttp.ClientSession(
                self.service.url, headers={"Authorization": f"Bearer {self.service.token.text}"}
            )
        )
        return self

    async def close(self):
        await self._stack.aclose()

    @property
    def library(self):
        return self.service.library

    async def ask(self, method, path, body=None, *, headers=None, **options):
        """(status, JSON or None) of one request to the API."""
        if isinstance(body, bytes):
            options |= {"data": body}
            headers = {"Content-Type": "application/x-bittorrent"} | (headers or {})
        elif body is not None:
            options |= {"json": body}
        async with self.http.request(method, f"/api/v1{path}", headers=headers, **options) as got:
            is_json = got.content_type == "application/json"
            return got.status, await got.json() if is_json else None

    async def add(self, data, **query):
        status, film = await self.ask("POST", "/films", data, params=query)
        assert status == 201, film
        return film


@pytest.fixture
async def house(tmp_path):
    house = House(tmp_path / "state")
    yield house
    await house.close()


@pytest.fixture
async def origin():
    server = FilmServer(FILM, next_host())
    await server.start()
    yield server
    await server.stop()
