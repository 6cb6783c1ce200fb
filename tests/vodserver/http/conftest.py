"""A server in this loop, and raw sockets to talk to it with."""

import asyncio
import contextlib
import dataclasses
from dataclasses import dataclass

import pytest

from vodserver.http import HttpServer
from vodserver.settings import ServeSettings
from vodserver.store import Ready


@dataclass(frozen=True)
class Answer:
    """One HTTP answer, as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes
    wire_bytes: int

    def __getitem__(self, name: str) -> str:
        return self.headers[name.lower()]


class RawClient:
    """An HTTP/1.1 client that sends just what it is told, and reads just what it is sent."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    async def ask(self, target, *headers, method="GET") -> Answer:
        lines = [f"{method} {target} HTTP/1.1", "Host: test", *headers, "", ""]
        self.writer.write("\r\n".join(lines).encode("latin-1"))
        return await self.read_answer(method)

    async def read_answer(self, method="GET") -> Answer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")[:-2]
        fields = {}
        for line in rest:
            name, _, value = line.partition(":")
            assert name.lower() not in fields, f"{name} twice"
            fields[name.lower()] = value.strip()
        status = int(first.split(" ")[1])
        length = int(fields.get("content-length", 0))
        body = b"" if method == "HEAD" or status == 304 else await self.reader.readexactly(length)
        return Answer(status, fields, body, len(head) + len(body))

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):  # cut by the server, as some tests want
            await self.writer.wait_closed()


@pytest.fixture
async def serving():
    """Start a server over an opened store: `server = await serving(store)`."""
    started = []

    async def start(store, seed=None, **changes):
        async def seed_status():
            return seed

        server = HttpServer(store, ServeSettings(port=0, **changes), seed_status=seed_status)
        await server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.close()


@pytest.fixture
async def connect():
    """Make raw clients: `client = await connect(server)`."""
    made = []

    async def make(server, **options):
        host, port = server.url.removeprefix("http://").split(":")
        client = RawClient(*await asyncio.open_connection(host, int(port), **options))
        made.append(client)
        return client

    yield make
    for client in made:
        await client.close()


async def settled(server, wanted, *, seconds=5):
    """Wait until the server's statistics are as wanted."""
    async with asyncio.timeout(seconds):
        while not wanted(server.statistics()):  # noqa: ASYNC110 - counters wake nobody
            await asyncio.sleep(0.005)


class Endless:
    """Stands for a store: any range of a long film is at hand, and what is asked is noted."""

    def __init__(self):
        self.read_bytes = 0
        """One past the furthest byte that was asked for."""

    def ready(self, title, at, end):
        self.read_bytes = max(self.read_bytes, end)
        return Ready(None, 0, end - at, 0, memoryview(bytes(end - at)))

    async def fetch(self, title, at, end):
        return self.ready(title, at, end)


@pytest.fixture
def endless(pristine, monkeypatch):
    """A store whose film has 64 MB, and what was read of it: `store, film = endless`."""
    film = Endless()
    with pristine.open() as opened:
        opened.include(dataclasses.replace(opened.titles()[0], film_bytes=64_000_000))
        monkeypatch.setattr(opened, "ready", film.ready)
        monkeypatch.setattr(opened, "fetch", film.fetch)
        yield opened, film


@pytest.fixture
def store(pristine):
    with pristine.open() as opened:
        yield opened
