"""Who may connect, how long they may dawdle, and what was sent to them."""

import asyncio
import socket

import pytest

from tests.vodserver.http.conftest import settled


async def test_every_byte_on_the_wire_is_counted(store, serving, connect):
    server = await serving(store)
    client = await connect(server)
    received = 0

    for target, *headers in (
        ("/titles",),
        ("/titles/clock/content", "Range: bytes=0-99999"),
        ("/titles/clock/content", "Range: bytes=99999999-"),
        ("/none",),
        ("/healthz",),
    ):
        received += (await client.ask(target, *headers)).wire_bytes

        assert server.statistics().bytes_sent == received


async def test_too_many_connections_are_told_to_come_back(store, serving, connect):
    server = await serving(store, http_connections=2)
    first, second = await connect(server), await connect(server)
    assert (await first.ask("/healthz")).status == 200
    assert (await second.ask("/healthz")).status == 200

    third = await connect(server)
    refused = await third.read_answer()

    assert (refused.status, refused["Retry-After"], refused["Connection"]) == (503, "5", "close")
    assert server.statistics().refused == 1

    await first.close()
    await settled(server, lambda s: s.connections == 1)
    assert (await (await connect(server)).ask("/healthz")).status == 200


async def ask_film(client):
    return await client.ask("/titles/clock/content", "Range: bytes=0-99")


@pytest.mark.slow
async def test_who_asks_nothing_makes_room_for_who_wants_to_be_let_in(store, serving, connect):
    server = await serving(store, http_connections=2)
    first, second = await connect(server), await connect(server)
    for client in (first, second):
        assert (await ask_film(client)).status == 206
    await asyncio.sleep(0.15)
    assert (await ask_film(first)).status == 206  # now the second has been idle for longest

    third = await connect(server)
    assert (await ask_film(third)).status == 206
    assert await second.reader.read() == b""
    assert (await ask_film(first)).status == 206
    statistics = server.statistics()
    assert (statistics.connections, statistics.accepted, statistics.refused) == (2, 3, 0)


async def test_who_has_just_asked_is_not_sent_away(store, serving, connect):
    server = await serving(store, http_connections=1)
    first = await connect(server)
    assert (await ask_film(first)).status == 206

    second = await connect(server)
    assert (await second.read_answer()).status == 503
    assert (await ask_film(first)).status == 206


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "])
async def test_a_connection_that_never_asks_is_cut(store, serving, connect, sent):
    server = await serving(store, header_timeout_seconds=0.05)
    client = await connect(server)
    client.writer.write(sent)

    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await asyncio.wait_for(client.read_answer(), 5)
    await settled(server, lambda s: s.connections == 0)


@pytest.mark.slow
async def test_an_idle_connection_is_closed_after_its_keep_alive(store, serving, connect):
    server = await serving(store, keepalive_timeout_seconds=0.05)
    client = await connect(server)
    await client.ask("/healthz")

    assert await asyncio.wait_for(client.reader.read(), 5) == b""


async def test_what_a_leaving_client_never_got_is_not_counted(endless, serving, connect):
    """Counted is what the client's kernel acknowledged, not what was written for it."""
    store, film = endless
    server = await serving(store)
    client = await connect(server, limit=1024)
    client.writer.write(b"GET /titles/clock/content HTTP/1.1\r\nHost: x\r\n\r\n")
    got = len(await client.reader.readexactly(1000))
    while server.statistics().bytes_sent == 0 or film.read_bytes < 200_000:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    client.writer.transport.abort()

    await settled(server, lambda s: s.connections == 0)

    assert got <= server.statistics().bytes_sent < film.read_bytes


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"\0" * 1000,
    ],
)
async def test_garbage_is_refused_and_the_server_serves_on(store, serving, connect, garbage):
    server = await serving(store)
    hostile, honest = await connect(server), await connect(server)
    hostile.writer.write(garbage)

    try:
        answer = await asyncio.wait_for(hostile.read_answer(), 5)
        assert 400 <= answer.status < 500
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # cut without a word is an answer too

    assert (await honest.ask("/healthz")).status == 200


async def test_a_server_that_stops_closes_its_connections(store, serving, connect):
    server = await serving(store, shutdown_seconds=0.1)
    client = await connect(server)
    await client.ask("/healthz")

    await server.close()

    assert await asyncio.wait_for(client.reader.read(), 5) == b""
    assert server.statistics().connections == 0


async def test_on_a_short_path_little_of_a_film_is_under_way(endless, serving, connect):
    """Half a megabyte in our kernel, and what the client's takes; not what theirs would grow to."""
    store, film = endless
    server = await serving(store)
    client = await connect(server, limit=1024)
    client.writer.write(b"GET /titles/clock/content HTTP/1.1\r\nHost: x\r\n\r\n")
    await client.reader.readexactly(1000)
    sent = -1
    while sent != server.statistics().bytes_sent:
        sent = server.statistics().bytes_sent
        await asyncio.sleep(0.05)

    peer = client.writer.get_extra_info("sockname")
    (ours,) = (c for c in server._gate._open if c._peer == peer[0])
    assert ours.own_socket().getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 512 * 1024
    assert film.read_bytes < 16_000_000
