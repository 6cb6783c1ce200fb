"""The server's part: what is ordered, fetched, injected, paid for and thrown away."""

import asyncio
import gc
import math
from dataclasses import replace

import aiohttp
import numpy as np
import pytest

from tests.conformance.check_picker import make_view
from tests.toast.origin.server import film_server
from tests.toast.swarm.world import PIECE, flipped, make_metainfo, random_film
from tests.toast.viewer.conftest import HASTY, next_host
from toast.common import blockhashes
from toast.common.geometry import BLOCK_BYTES
from toast.origin import OriginClient, OriginError
from toast.policy.handover import HandOverSettings, Order, Reason, Terms, due_orders
from toast.swarm import Block
from toast.viewer.accounts import Accounts
from toast.viewer.supply import Supply

FILM = random_film(4 * PIECE - 99)
METAINFO = make_metainfo(FILM, hashes_url="http://127.0.0.1/hashes")
NOW = HandOverSettings(parallel=4)


class FakeSwarm:
    """Takes injections, and knows which blocks have come."""

    def __init__(self, told):
        self.injected = []
        self.blocks = {}
        self._told = told

    def inject(self, piece, data):
        self.injected.append((piece, data))
        self._told()


class Bench:
    """A supply at work."""

    def __init__(self, http, server):
        loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.looks = 0
        self.accounts = Accounts()
        self.swarm = FakeSwarm(self.changed.set)
        self.now = 0.0
        origin = OriginClient(
            http, (server.url,), film_bytes=len(FILM), clock=loop.time, settings=HASTY
        )
        hashes = OriginClient(
            http,
            (f"{server.root}/hashes",),
            film_bytes=blockhashes.leaves_bytes(METAINFO.geometry),
            clock=loop.time,
            settings=HASTY,
        )
        self.readable = []
        self.supply = Supply(
            METAINFO,
            origin,
            self.accounts,
            clock=lambda: self.now,
            stuck_seconds=3.0,
            changed=self.look_again,
            hashes=hashes,
            readable=self.more_is_readable,
        )

    def look_again(self):
        self.looks += 1
        self.changed.set()

    def more_is_readable(self, piece):
        self.readable.append(piece)
        self.changed.set()

    def step(self, have="", *, waiting=None, first_blocks=None):
        """Let it order: all four pieces are due, nobody has them."""
        view = make_view("0000", have)
        view = replace(view, slack=np.zeros(4), closed=self.supply.closed.copy())
        blocks = self.supply.missing_blocks(self.swarm.blocks)
        geometry, origin = METAINFO.geometry, self.supply.estimate()
        terms = Terms(waiting=waiting, first_blocks=first_blocks)
        self.supply.fetch(due_orders(view, blocks, geometry, origin, NOW, terms), self.swarm)
        return self.supply.retry_in

    async def until(self, condition):
        async with asyncio.timeout(5):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def settled(self):
        """Nothing is under way any more."""
        async with asyncio.timeout(5):
            while self.supply._requests:
                await asyncio.wait(self.supply._requests)


@pytest.fixture
async def server():
    async with film_server(FILM, next_host()) as running:
        yield running


@pytest.fixture
async def bench(server):
    async with aiohttp.ClientSession(auto_decompress=False) as http:
        made = Bench(http, server)
        yield made
        await made.supply.close()


def piece(number):
    return FILM[number * PIECE : (number + 1) * PIECE]


async def test_whole_pieces_are_fetched_injected_and_paid_for(bench, server):
    bench.step(waiting=Reason.STARTUP)
    assert bench.supply.closed.all()
    await bench.settled()
    assert sorted(bench.swarm.injected) == [(number, piece(number)) for number in range(4)]
    assert sum(bench.accounts.origin_payload.values()) == len(FILM) == server.payload
    assert list(bench.accounts.origin_payload) == ["startup"]
    assert bench.accounts.from_origin > len(FILM)
    assert bench.supply.closed.all()  # until the swarm has verified them


async def test_it_hurries_until_all_is_here_that_a_picture_waits_for(bench, server):
    assert not bench.supply.is_hurrying
    bench.step(waiting=Reason.STARTUP, first_blocks=lambda _: np.ones(4, dtype=np.bool_))
    assert bench.supply.is_hurrying
    await bench.settled()
    assert not bench.supply.is_hurrying
    assert bench.looks == 1, "then it is time to look again"


async def test_only_missing_blocks_are_fetched_and_filler_stands_for_the_rest(bench, server):
    bench.swarm.blocks = {2: np.array([False, True, False, True])}
    bench.step(have="** *")
    await bench.settled()
    base = 2 * PIECE
    assert server.ranges == [
        (base + BLOCK_BYTES, base + 2 * BLOCK_BYTES),
        (base + 3 * BLOCK_BYTES, base + 4 * BLOCK_BYTES),
    ]
    ((number, data),) = bench.swarm.injected
    blocks = [data[start : start + BLOCK_BYTES] for start in range(0, PIECE, BLOCK_BYTES)]
    whole = [piece(2)[start : start + BLOCK_BYTES] for start in range(0, PIECE, BLOCK_BYTES)]
    assert number == 2
    assert [blocks[1], blocks[3]] == [whole[1], whole[3]]
    assert blocks[0] == blocks[2] == bytes(BLOCK_BYTES)


async def test_filler_is_never_taken_for_the_piece(bench):
    bench.swarm.blocks = {2: np.array([False, True, False, True])}
    bench.step(have="** *")
    await bench.settled()
    assert bench.supply.piece_verified(2) is None


async def test_what_is_closed_is_not_ordered_twice(bench, server):
    bench.step()
    bench.step()
    await bench.settled()
    bench.step()
    await bench.settled()
    assert server.payload == len(FILM)


async def test_a_verified_piece_is_open_again_for_accounts_only(bench):
    bench.step()
    await bench.settled()
    bench.supply.piece_verified(1)
    assert bench.supply.closed.tolist() == [True, False, True, True]


async def test_after_a_lie_the_whole_piece_is_fetched_whatever_has_come(bench, server):
    bench.swarm.blocks = {0: np.array([False, True, False, True])}
    bench.supply.piece_failed(0)
    bench.step(have=" ***")
    await bench.settled()
    assert server.ranges == [(0, PIECE)]
    assert bench.accounts.origin_payload == {"poisoned": PIECE}


async def test_a_server_with_other_bytes_is_distrusted_and_nothing_of_it_is_injected(bench, server):
    server.content = flipped(FILM, 5)
    bench.step(have=" ***")
    await bench.settled()
    assert bench.swarm.injected == []
    assert not bench.supply.closed.any()
    assert bench.supply.up is False
    assert "other bytes than the .torrent promises" in bench.supply.last_error
    wait = bench.step(have=" ***")
    assert 0 < wait <= HASTY.most_retry_seconds
    assert len(server.ranges) == 1


async def test_a_failed_fetch_opens_the_piece_for_peers(bench, server):
    await server.stop()
    bench.step()
    await bench.settled()
    assert not bench.supply.closed.any()
    assert bench.swarm.injected == []


async def test_a_fetch_that_fails_in_an_unforeseen_way_opens_the_piece_for_peers(bench, server):
    def fail(*_):
        raise ZeroDivisionError

    bench.supply.early.add = fail
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    bench.step()
    await bench.settled()
    gc.collect()
    assert not bench.supply.closed.any()
    assert any(isinstance(each.get("exception"), ZeroDivisionError) for each in told)


async def test_what_peers_completed_meanwhile_is_regretted(bench, server):
    server.gate.clear()
    bench.step(have=" ***")
    bench.supply.piece_verified(0)
    server.gate.set()
    await bench.settled()
    assert bench.swarm.injected == []
    assert bench.accounts.regret == PIECE


async def test_blocks_that_peers_brought_meanwhile_are_regretted(bench, server):
    server.gate.clear()
    bench.step(have=" ***")
    for number in (1, 2):
        block = Block(0, number, ("127.0.0.2", 1), operator=False)
        bench.accounts.block_arrived(block, METAINFO.geometry)
    server.gate.set()
    await bench.settled()
    assert bench.accounts.regret == 2 * BLOCK_BYTES
    assert [number for number, _ in bench.swarm.injected] == [0]


async def test_what_was_injected_and_never_heard_of_is_opened_again(bench):
    bench.step(have=" ***")
    await bench.settled()
    bench.now = 2.9
    bench.supply.mend(bench.swarm)
    assert bench.supply.closed[0]
    bench.now = 3.1
    bench.supply.mend(bench.swarm)
    assert not bench.supply.closed[0]


async def test_what_was_injected_and_lost_is_given_a_second_time_but_not_a_third(bench):
    bench.step(have=" ***")
    await bench.settled()
    for bench.now in (0.2, 0.3, 0.4):
        bench.supply.mend(bench.swarm)
    assert bench.swarm.injected == [(0, piece(0))] * 2


async def test_a_lie_during_a_fetch_fetches_all_of_the_piece_and_injects_no_filler(bench, server):
    server.gate.clear()
    bench.swarm.blocks = {0: np.array([False, True, False, True])}
    bench.step(have=" ***")
    bench.supply.piece_failed(0)
    bench.step(have=" ***")
    server.gate.set()
    await bench.settled()
    assert bench.swarm.injected == [(0, piece(0))]


async def test_a_block_is_lent_out_before_its_piece_is_complete(bench, server):
    server.hashes = blockhashes.leaves(FILM)
    server.pause_after = BLOCK_BYTES + 5
    server.gate.clear()
    bench.step(have=" ***", waiting=Reason.STARTUP)
    await bench.until(lambda: bench.readable)
    assert bench.supply.early.read(0, 0, PIECE) == FILM[:BLOCK_BYTES]
    assert bench.swarm.injected == []
    assert bench.supply.missing_blocks(bench.swarm.blocks)(0).tolist() == [False, True, True, True]
    server.gate.set()
    await bench.settled()
    assert bench.supply.early.read(0, 0, PIECE) == piece(0)
    assert bench.swarm.injected == [(0, piece(0))]
    assert bench.supply.piece_verified(0) == piece(0)
    assert 0 not in bench.supply.early


@pytest.mark.parametrize("wrong", ["the film", "the hashes"])
async def test_nothing_wrong_is_lent_out(bench, server, wrong):
    server.hashes = blockhashes.leaves(FILM if wrong == "the film" else flipped(FILM, 5))
    if wrong == "the film":
        server.content = flipped(FILM, 5)
    server.pause_after = BLOCK_BYTES
    server.gate.clear()
    bench.step(have=" ***", waiting=Reason.STARTUP)
    server.gate.set()
    await bench.settled()
    await bench.until(lambda: not bench.supply._lessons)
    assert bench.supply.early.read(0, 0, BLOCK_BYTES) == b""
    assert bench.swarm.injected == ([] if wrong == "the film" else [(0, piece(0))])


async def test_hashes_are_asked_for_only_where_a_picture_waits(bench, server):
    server.hashes = blockhashes.leaves(FILM)
    later = Order(0, ((0, 4),), Reason.NO_SOURCE, 9.0)
    bench.supply.fetch([later], bench.swarm)
    await bench.settled()
    assert bench.readable == []
    assert bench.swarm.injected == [(0, piece(0))]


async def test_what_is_needed_no_more_is_given_up_and_what_came_of_it_is_kept(bench, server):
    server.hashes = blockhashes.leaves(FILM)
    server.pause_after = BLOCK_BYTES
    server.gate.clear()
    bench.step(have=" ***", waiting=Reason.STARTUP)
    await bench.until(lambda: bench.readable)
    bench.supply.abandon(np.array([True, False, False, False]))
    assert not bench.supply.closed[0]
    await bench.settled()
    server.gate.set()
    server.pause_after = None
    bench.step(have=" ***", waiting=Reason.STARTUP)
    await bench.settled()
    assert server.ranges == [(0, PIECE), (BLOCK_BYTES, PIECE)]
    assert bench.swarm.injected == [(0, piece(0))]


async def test_closing_gives_up_what_is_under_way(bench, server):
    server.gate.clear()
    bench.step()
    await bench.supply.close()
    server.gate.set()
    assert bench.swarm.injected == []


async def test_a_piece_past_the_swarm_is_verified_too(bench, server):
    assert await bench.supply.fetch_piece(3) == piece(3)
    assert bench.accounts.from_origin > len(piece(3))
    server.content = flipped(FILM, 3 * PIECE)
    with pytest.raises(OriginError, match="other bytes"):
        await bench.supply.fetch_piece(3)


async def test_without_a_server_there_is_nothing_to_wait_for():
    supply = Supply(
        METAINFO, None, Accounts(), clock=lambda: 0.0, stuck_seconds=3.0, changed=lambda: None
    )
    assert not supply.estimate().up
    assert supply.retry_in == math.inf
    assert (supply.up, supply.last_error, supply.estimate().up) == (None, None, False)
    with pytest.raises(OriginError, match="no VoD server"):
        await supply.fetch_piece(0)
