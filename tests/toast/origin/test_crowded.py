"""A server with too few connections for everybody: no failure, as long as it answers somebody."""

import asyncio
import contextlib

import aiohttp
import pytest

from toast.common.geometry import BLOCK_BYTES
from toast.origin import OriginClient, OriginError

FILM = bytes(range(256)) * 64 * 40
PARTS = [(start, start + BLOCK_BYTES) for start in range(0, len(FILM), BLOCK_BYTES)]
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class CrowdedServer:
    """Lets so many connections in, and turns every other one away before it has asked.

    Attributes:
        room: connections that are let in at a time.
        refused: those that were not.
        words: what they are told.
    """

    def __init__(self, room):
        self.room = room
        self.refused = 0
        self.words = FULL
        self._open = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = "http://{}:{}/film".format(*self._server.sockets[0].getsockname())
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self._open:
            writer.close()

    async def _serve(self, reader, writer):
        if len(self._open) >= self.room:
            self.refused += 1
            writer.write(self.words)
            writer.close()
            return
        self._open.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                first, last = request.split(b"bytes=")[1].split(b"\r\n")[0].split(b"-")
                body = FILM[int(first) : int(last) + 1]
                head = (
                    f"HTTP/1.1 206 Partial Content\r\nContent-Length: {len(body)}\r\n"
                    f"Content-Range: bytes {int(first)}-{int(last)}/{len(FILM)}\r\n\r\n"
                )
                await asyncio.sleep(0.005)
                writer.write(head.encode() + body)
                await writer.drain()
        self._open.discard(writer)
        writer.close()


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


def client_of(http, *urls):
    return OriginClient(http, urls, film_bytes=len(FILM), clock=asyncio.get_running_loop().time)


async def fetch_all(client):
    fetched = await asyncio.gather(*(client.fetch(*part) for part in PARTS))
    assert b"".join(each.data for each in fetched) == FILM


@pytest.mark.parametrize("words", [FULL, b""], ids=["told so", "hung up on"])
@pytest.mark.parametrize("room", [1, 3, 39])
async def test_what_is_turned_away_comes_over_the_connections_that_were_let_in(http, room, words):
    async with CrowdedServer(room) as server:
        server.words = words
        client = client_of(http, server.url)
        first = asyncio.create_task(client.fetch(*PARTS[0]))
        if not words:  # which says nothing, unless others are answered
            await first
        await asyncio.wait_for(fetch_all(client), 5)
        await first

        assert server.refused > 0
        assert client.up
        assert client.last_error is None


@pytest.mark.slow
async def test_a_server_that_is_full_is_asked_by_one_alone_until_there_is_room(http):
    async with CrowdedServer(0) as server:
        client = client_of(http, server.url)
        fetching = asyncio.create_task(fetch_all(client))
        async with asyncio.timeout(5):
            while server.refused < len(PARTS) + 2:  # noqa: ASYNC110 - it wakes nobody
                await asyncio.sleep(0.01)
        assert client.up
        server.room = 2
        await asyncio.wait_for(fetching, 5)
        assert server.refused < 2 * len(PARTS)


async def test_where_another_server_has_the_film_too_that_one_is_asked(http):
    async with CrowdedServer(0) as full, CrowdedServer(100) as free:
        client = client_of(http, full.url, free.url)
        with pytest.raises(OriginError, match="too many connections"):
            await client.fetch(*PARTS[0])
        assert (await client.fetch(*PARTS[0])).data == FILM[:BLOCK_BYTES]


async def test_who_gives_up_waiting_leaves_its_place_to_others(http):
    async with CrowdedServer(1) as server:
        client = client_of(http, server.url)
        fetches = [asyncio.create_task(client.fetch(*part)) for part in PARTS]
        await fetches[0]
        for fetch in fetches[1::2]:
            fetch.cancel()
        await asyncio.wait_for(asyncio.gather(*fetches[2::2]), 5)
        await asyncio.wait_for(fetch_all(client), 5)
