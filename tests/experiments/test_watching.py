"""The paced reader: when its picture starts, when it halts, and what it takes for wrong."""

import asyncio
import io

import aiohttp
import numpy as np
import pytest
from aiohttp import web

from experiments.errors import LabError
from experiments.thin_line import ThinLine
from experiments.watching import PacedReader
from toast.common.timemap import TimeMap

FILM = np.random.default_rng(1).bytes(640 * 1024)
TIMEMAP = TimeMap.constant(len(FILM), 0.4)
HALF = len(FILM) // 2


class Server:
    """Sends the film, or what a test makes of it."""

    def __init__(self):
        self.pause_at_half = 0.0
        self.content = FILM
        self.sent_at_half = asyncio.Event()

    async def answer(self, request):
        response = web.StreamResponse(headers={"Content-Length": str(len(FILM))})
        await response.prepare(request)
        await response.write(self.content[:HALF])
        self.sent_at_half.set()
        await asyncio.sleep(self.pause_at_half)
        await response.write(self.content[HALF:])
        if len(self.content) < len(FILM):
            request.transport.close()
        return response


@pytest.fixture
async def server():
    made = Server()
    app = web.Application()
    app.router.add_get("/film", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/film"
    yield made
    await runner.cleanup()


async def watch(url, *, buffer=1.0, **options):
    clock = asyncio.get_running_loop().time
    player = PacedReader(TIMEMAP, io.BytesIO(FILM), buffer_seconds=buffer, clock=clock)
    async with aiohttp.ClientSession() as http:
        return await player.watch(http, url, since=clock(), **options)


async def test_what_comes_in_time_halts_nothing(server):
    watched = await watch(server.url)
    assert (watched.stalls, watched.wrong_bytes, watched.film_bytes) == (0, 0, len(FILM))
    assert 0 < watched.start_seconds < 0.2


@pytest.mark.slow
async def test_a_pause_longer_than_the_film_that_was_read_is_one_halt(server):
    server.pause_at_half = 0.6
    watched = await watch(server.url)
    assert watched.stalls == 1
    assert watched.stall_seconds == pytest.approx(0.4, abs=0.15)
    assert watched.halts[0][0] == pytest.approx(0.2, abs=0.02)


async def test_a_pause_that_the_buffer_bears_is_none(server):
    server.pause_at_half = 0.1
    assert (await watch(server.url)).stalls == 0


async def test_each_wrong_byte_is_counted(server):
    server.content = bytes([FILM[0] ^ 1, FILM[1] ^ 1]) + FILM[2:-1] + bytes([FILM[-1] ^ 1])
    assert (await watch(server.url)).wrong_bytes == 3


async def test_who_leaves_early_tells_of_the_start(server):
    watched = await watch(server.url, until_seconds=0.0)
    assert watched.film_bytes < len(FILM)
    assert watched.start_seconds < 0.2


async def test_a_film_that_breaks_off_is_an_error(server):
    server.content = FILM[: HALF + 5]
    with pytest.raises(LabError, match="breaks off at byte"):
        await watch(server.url)


async def test_a_film_that_is_refused_is_an_error(server):
    with pytest.raises(LabError, match="answers 404"):
        await watch(server.url.replace("film", "else"))


@pytest.mark.slow
async def test_a_thin_line_carries_the_film_late_and_at_its_rate(server):
    clock = asyncio.get_running_loop().time
    async with ThinLine(server.url, rate=2_000_000.0, delay_seconds=0.05, clock=clock) as line:
        began = clock()
        watched = await watch(line.url)
        took = clock() - began
    assert watched.wrong_bytes == 0
    assert line.carried_bytes >= len(FILM)
    assert watched.start_seconds >= 0.1
    assert took >= 0.1 + len(FILM) / 2_000_000.0 * 0.95


async def test_a_line_to_nowhere_is_an_error():
    with pytest.raises(LabError, match="names no server and port"):
        ThinLine("http://films.example/film", rate=1.0, delay_seconds=0.0, clock=lambda: 0.0)
