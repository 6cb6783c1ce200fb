"""The same on uvloop, on which the program runs: its transports are others."""

import asyncio

import pytest
import uvloop

from tests.vodserver.http.conftest import RawClient, settled
from vodserver.http import HttpServer
from vodserver.settings import ServeSettings

CONTENT = "/titles/clock/content"


@pytest.fixture
def on_uvloop():
    """Run a scenario with a server over a store: `on_uvloop(store, scenario, **settings)`."""

    async def run(store, scenario, **changes):
        async def no_seed():
            return None

        server = HttpServer(store, ServeSettings(port=0, **changes), seed_status=no_seed)
        await server.start()
        clients = []

        async def connect(**options):
            port = int(server.url.rsplit(":", 1)[1])
            client = RawClient(*await asyncio.open_connection("127.0.0.1", port, **options))
            clients.append(client)
            return client

        try:
            await scenario(server, connect)
        finally:
            for client in clients:
                await client.close()
            await server.close()

    def start(store, scenario, **changes):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(store, scenario, **changes))

    return start


def test_ranges_arrive_and_every_byte_is_counted(pristine, store, on_uvloop):
    film = pristine.film.read_bytes()

    async def scenario(server, connect):
        client = await connect()
        received = 0
        for start, last in ((0, len(film) - 1), (65_535, 300_001), (len(film) - 1, 10**9)):
            answer = await client.ask(CONTENT, f"Range: bytes={start}-{last}")
            received += answer.wire_bytes
            assert answer.body == film[start : last + 1]
            assert server.statistics().bytes_sent == received

    on_uvloop(store, scenario)


def test_what_a_leaving_client_never_got_is_not_counted(endless, on_uvloop):
    store, film = endless

    async def scenario(server, connect):
        client = await connect(limit=1024)
        client.writer.write(f"GET {CONTENT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got = len(await client.reader.readexactly(1000))
        while film.read_bytes < 300_000:  # noqa: ASYNC110 - counters wake nobody
            await asyncio.sleep(0.001)
        client.writer.transport.abort()
        await settled(server, lambda s: s.connections == 0)
        assert got <= server.statistics().bytes_sent < film.read_bytes

    on_uvloop(store, scenario)


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut(endless, on_uvloop):
    store, film = endless

    async def scenario(server, connect):
        client = await connect(limit=1024)
        client.writer.write(f"GET {CONTENT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await settled(server, lambda s: film.read_bytes and not s.connections)
        assert film.read_bytes < 32_000_000

    on_uvloop(store, scenario, send_timeout_seconds=0.2)


def test_a_silent_connection_and_one_too_many_are_sent_away(store, on_uvloop):
    async def scenario(server, connect):
        silent = await connect()
        await settled(server, lambda s: s.connections == 1)
        refused = await (await connect()).read_answer()
        assert refused.status == 503
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(silent.read_answer(), 5)
        await settled(server, lambda s: s.connections == 0)

    on_uvloop(store, scenario, http_connections=1, header_timeout_seconds=0.1)
