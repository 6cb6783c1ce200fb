"""Listening: many clients who come at once are all let in soon."""

import asyncio
import contextlib
import socket

import pytest
import uvloop

from vodserver.http.listening import listen

CLIENTS = 64
TURNS = 12


class Noted(asyncio.Protocol):
    """A connection that says that it was let in."""

    def __init__(self, noted):
        self.noted = noted
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        self.noted.append(self)


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request):
    made = uvloop.new_event_loop() if request.param == "uvloop" else asyncio.new_event_loop()
    yield made
    made.close()


async def close(servers, noted):
    for server in servers:
        server.close()
    for each in noted:
        each.transport.abort()
    await asyncio.sleep(0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_crowd_is_let_in_within_a_few_turns_of_the_loop(loop, host):
    """Busy loops turn slowly: with one client for each turn the last ones would wait long."""

    async def crowd():
        noted, turns = [], 0
        servers = await listen(lambda: Noted(noted), host, 0)
        address = servers[0].sockets[0].getsockname()[:2]
        with contextlib.ExitStack() as stack:
            for _ in range(CLIENTS):
                stack.enter_context(socket.create_connection(address))
            while len(noted) < CLIENTS and turns < CLIENTS:
                await asyncio.sleep(0)
                turns += 1
            await close(servers, noted)
        return len(noted), turns

    let_in, turns = loop.run_until_complete(crowd())
    assert let_in == CLIENTS
    assert turns <= TURNS


def test_nobody_is_let_in_any_more_once_all_are_closed(loop):
    async def knock():
        noted = []
        servers = await listen(lambda: Noted(noted), "127.0.0.1", 0)
        address = servers[0].sockets[0].getsockname()
        await close(servers, noted)
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)

    loop.run_until_complete(knock())


def test_a_port_that_is_taken_is_an_error(loop):
    async def twice():
        first = await listen(lambda: Noted([]), "127.0.0.1", 0)
        with pytest.raises(OSError, match="in use"):
            await listen(lambda: Noted([]), "127.0.0.1", first[0].sockets[0].getsockname()[1])
        await close(first, [])

    loop.run_until_complete(twice())
