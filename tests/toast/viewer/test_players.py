"""Players at a real viewer: several at a time, seeking, pausing, and what that costs the server."""

import asyncio
import contextlib

import pytest

from tests.toast.viewer.conftest import FILM
from toast.common.timemap import TimeMap
from toast.policy.playhead import State
from toast.viewer import FilmReader, Pace

SECONDS = 60.0
PIECE = 32 * 1024
RATE = len(FILM) / SECONDS


def byte_at(second):
    return int(second * RATE)


async def read(viewer, start, end):
    """Everything of a range, as fast as it comes."""
    data = b""
    async for chunk in FilmReader(viewer).read(start, end):
        data += chunk
    return data


async def until(condition, seconds=10.0):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def watching(world, **settings):
    options = {"seconds": SECONDS, "pace": Pace.READERS, "tracker": False} | settings
    viewer = await world.viewer(**options)
    running = asyncio.create_task(viewer.run())
    try:
        yield viewer
    finally:
        viewer.stop()
        await running


def fetched(world):
    """Which bytes were asked of the server, as a set of blocks of 1 KiB."""
    return {at // 1024 for start, end in world.server.ranges for at in range(start, end, 1024)}


@pytest.mark.slow
async def test_a_player_gets_its_film_and_nobody_who_does_not_play_makes_traffic(world):
    async with watching(world) as viewer:
        await until(lambda: viewer.playhead.start_seconds is not None)
        assert await read(viewer, 0, byte_at(5)) == FILM[: byte_at(5)]
        await asyncio.sleep(0.3)
        # Five seconds taken; the reserve is that of a player who may go on any moment.
        assert world.server.payload <= byte_at(5 + 20)
        assert viewer.progress()["readers"] == 0


@pytest.mark.slow
async def test_a_seek_is_served_at_once_and_the_old_place_is_left(world):
    async with watching(world) as viewer:
        await read(viewer, 0, byte_at(3))
        began = asyncio.get_running_loop().time()
        data = await read(viewer, byte_at(45), byte_at(46))
        assert data == FILM[byte_at(45) : byte_at(46)]
        assert asyncio.get_running_loop().time() - began < 1.0
        assert viewer.playhead.position == pytest.approx(45.0, abs=2.5)
        await until(lambda: viewer.playhead.seek_seconds)
        between = {at // 1024 for at in range(byte_at(30), byte_at(40), 1024)}
        assert not between & fetched(world)


@pytest.mark.slow
async def test_going_back_to_what_is_here_costs_nothing(world):
    async with watching(world) as viewer:
        await read(viewer, 0, byte_at(4))
        await read(viewer, byte_at(40), byte_at(44))
        await until(lambda: not viewer._supply._fetches)
        before = set(fetched(world))
        sent = world.server.payload
        assert await read(viewer, 0, byte_at(2)) == FILM[: byte_at(2)]
        assert await read(viewer, byte_at(40), byte_at(42)) == FILM[byte_at(40) : byte_at(42)]
        assert before <= fetched(world)
        # It may prepare for what comes next, but nothing is fetched a second time.
        again = [at for start, end in world.server.ranges for at in range(start, end)]
        assert len(again) == len(set(again))
        assert world.server.payload - sent <= byte_at(20)


@pytest.mark.slow
async def test_what_a_seek_leaves_behind_is_broken_off_within_a_moment(world):
    world.server.pause_after = 1024
    world.server.gate.clear()
    async with watching(world) as viewer:
        old = asyncio.create_task(read(viewer, 0, byte_at(3)))
        await until(lambda: viewer._supply._fetches)
        old.cancel()
        new = asyncio.create_task(read(viewer, byte_at(50), byte_at(51)))
        began = asyncio.get_running_loop().time()
        await until(lambda: viewer._supply._fetches and min(viewer._supply._fetches) > 20)
        assert asyncio.get_running_loop().time() - began < 0.2
        world.server.pause_after = None
        world.server.gate.set()
        assert await new == FILM[byte_at(50) : byte_at(51)]


@pytest.mark.slow
async def test_eight_players_at_eight_places_all_get_on(world):
    async with watching(world) as viewer:
        places = range(0, 56, 7)
        parts = await asyncio.wait_for(
            asyncio.gather(*(read(viewer, byte_at(at), byte_at(at + 3)) for at in places)), 20
        )
        assert parts == [FILM[byte_at(at) : byte_at(at + 3)] for at in places]


@pytest.mark.slow
async def test_a_paused_player_pauses_the_film(world):
    async with watching(world) as viewer:
        stream = FilmReader(viewer).read(0, len(FILM))
        taken = 0
        while taken < byte_at(1):
            taken += len(await anext(stream))
        await until(lambda: viewer.playhead.state is State.PAUSED, seconds=15)
        assert viewer.playhead.position < 8
        assert viewer.progress()["paused"]
        assert viewer.playhead.stalls == 0
        await stream.aclose()


@pytest.mark.slow
async def test_the_first_blocks_are_read_before_their_piece_is_complete(world):
    world.server.pause_at = 20_000  # more than a block, less than a piece
    world.server.gate.clear()
    async with watching(world, hashes=True) as viewer:
        first = await asyncio.wait_for(anext(FilmReader(viewer).read(0, len(FILM))), 5)
        assert first == FILM[: len(first)]
        assert 0 < len(first) < PIECE
        assert not viewer.have[0]
        world.server.gate.set()


def test_the_film_of_these_tests_is_slow_enough():
    assert TimeMap.constant(len(FILM), SECONDS).bit_rate == pytest.approx(RATE)
    assert PIECE / RATE > 1.5
