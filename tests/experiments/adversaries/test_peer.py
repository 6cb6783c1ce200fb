"""Peers on real sockets, called by a caller of our own: each does what it is there for."""

import asyncio
import contextlib
import hashlib

import numpy as np
import pytest

from experiments.adversaries import Peer, SharedFilm, conduct_names, create_conduct
from experiments.adversaries.wire import Handshake, Kind, MessageBuffer, Request, pack
from experiments.errors import LabError
from toast.common.geometry import BLOCK_BYTES, Geometry

DATA = np.random.default_rng(1).bytes(40 * BLOCK_BYTES)
FILM = SharedFilm(DATA, Geometry(len(DATA), 2 * BLOCK_BYTES), hashlib.sha1(DATA).digest())


class Caller:
    def __init__(self, reader, writer):
        self._reader, self.writer = reader, writer
        self._buffer, self._come = MessageBuffer(), []

    async def message(self):
        while not self._come:
            data = await asyncio.wait_for(self._reader.read(65536), 5)
            if not data:
                raise EOFError
            self._come += self._buffer.feed(data)
        return self._come.pop(0)

    async def let_in(self):
        assert (await self.message()).kind == Kind.BITFIELD
        self.writer.write(pack(Kind.INTERESTED))
        return (await self.message()).kind == Kind.UNCHOKE

    async def block(self, piece, start=0):
        request = Request(piece, start, BLOCK_BYTES)
        self.writer.write(pack(Kind.REQUEST, request.pack()))
        message = await self.message()
        assert message.kind == Kind.PIECE
        return message.payload[8:] == FILM.block(request)


@contextlib.asynccontextmanager
async def call(conduct, *, uplink=None, info_hash=FILM.info_hash):
    clock = asyncio.get_running_loop().time
    made = create_conduct(conduct, np.random.default_rng(3))
    peer = Peer(FILM, made, "127.53.0.1", uplink=uplink, clock=clock)
    await peer.start()
    try:
        reader, writer = await asyncio.open_connection(*peer.address)
        writer.write(Handshake(info_hash, b"-CA0001-" + bytes(12)).pack())
        if info_hash == FILM.info_hash:
            hello = Handshake.parse(await reader.readexactly(68))
            assert hello == Handshake(info_hash, peer.peer_id)
        yield peer, Caller(reader, writer)
        writer.close()
    finally:
        await peer.stop()


async def test_an_honest_peer_sends_the_truth():
    async with call("honest") as (peer, caller):
        assert await caller.let_in()
        assert all([await caller.block(piece, BLOCK_BYTES) for piece in range(20)])
        assert peer.asked == 20


async def test_a_poisoner_lies_in_some_blocks_and_always_in_the_same():
    async with call("poisoner") as (peer, caller):
        assert await caller.let_in()
        truths = [await caller.block(piece) for piece in range(20)]
        assert 0 < truths.count(False) < 12
        assert [await caller.block(piece) for piece in range(20)] == truths
        assert peer.conduct.poisoned == 2 * truths.count(False)


async def nothing_comes(caller):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(caller.message(), 0.1)


async def test_a_silent_one_takes_requests_and_is_not_heard_of_again():
    async with call("silent") as (peer, caller):
        assert await caller.let_in()
        caller.writer.write(pack(Kind.REQUEST, Request(0, 0, BLOCK_BYTES).pack()))
        await nothing_comes(caller)
        assert peer.asked == 1


async def test_a_choker_lets_nobody_in():
    async with call("choker") as (_, caller):
        assert (await caller.message()).kind == Kind.BITFIELD
        caller.writer.write(pack(Kind.INTERESTED))
        await nothing_comes(caller)


async def test_a_liar_has_each_second_piece():
    async with call("liar") as (_, caller):
        assert await caller.let_in()
        assert await caller.block(2)
        caller.writer.write(pack(Kind.REQUEST, Request(3, 0, BLOCK_BYTES).pack()))
        await nothing_comes(caller)


@pytest.mark.slow
async def test_a_slow_one_sends_no_faster_than_it_may_and_says_nothing_in_the_middle_of_a_block():
    """An answer to a second 'interested' inside a block would be a poisoned block."""
    async with call("honest", uplink=100_000.0) as (_, caller):
        assert await caller.let_in()
        clock = asyncio.get_running_loop().time
        began = clock()
        for piece in range(2):
            caller.writer.write(pack(Kind.REQUEST, Request(piece, 0, BLOCK_BYTES).pack()))
        await asyncio.sleep(0.05)
        caller.writer.write(pack(Kind.INTERESTED))
        kinds = []
        for _ in range(3):
            message = await caller.message()
            kinds.append(message.kind)
            if message.kind == Kind.PIECE:
                piece = len([kind for kind in kinds if kind == Kind.PIECE]) - 1
                assert message.payload[8:] == FILM.block(Request(piece, 0, BLOCK_BYTES))
        assert sorted(kinds) == [Kind.UNCHOKE, Kind.PIECE, Kind.PIECE]
        assert clock() - began >= 2 * BLOCK_BYTES / 100_000.0 * 0.95


async def test_one_that_loses_power_leaves_its_callers_waiting_and_comes_back():
    async with call("honest") as (peer, caller):
        assert await caller.let_in()
        address = peer.address
        peer.freeze()
        caller.writer.write(pack(Kind.REQUEST, Request(0, 0, BLOCK_BYTES).pack()))
        await nothing_comes(caller)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        await peer.stop()
        await peer.start()
        assert peer.address == address
        _, writer = await asyncio.open_connection(*address)
        writer.close()


async def test_callers_for_another_film_are_not_spoken_with():
    async with call("honest", info_hash=bytes(20)) as (peer, caller):
        with pytest.raises((EOFError, ConnectionError)):
            await caller.message()
        assert peer.callers == 0


def test_conducts_have_names():
    assert set(conduct_names()) >= {"honest", "slow", "silent", "poisoner", "choker", "liar"}
    with pytest.raises(LabError, match="no peer behaves like 'nice'"):
        create_conduct("nice", np.random.default_rng(1))
