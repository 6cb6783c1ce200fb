"""Clients that play over HTTP, from a server of a few lines."""

import asyncio
import time

import pytest
from aiohttp import web

from experiments.arrays.clients import Client, PacedClient, play_streams
from experiments.arrays.playback import Playback
from experiments.errors import LabError

EXTENT = 1000


@pytest.fixture
async def serve():
    runners = []

    async def serve(handler):
        app = web.Application()
        app.router.add_get("/film", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/film"

    yield serve
    for runner in runners:
        await runner.cleanup()


def play(*clients, hold=5.0):
    begins = [0.0] * len(clients)
    return play_streams(clients, begins, start=time.monotonic(), hold_seconds=hold)


async def test_a_film_goes_round_and_ends(serve):
    asked = []

    async def film(request):
        part = request.http_range
        asked.append((part.start, part.stop))
        return web.Response(status=206, body=bytes(part.stop - part.start))

    url = await serve(film)
    result = await play(Client(url, Playback(0.001, 0.001, 3), EXTENT, extents=2))
    assert asked == [(0, 1000), (1000, 2000), (0, 1000)]
    assert (result.streams, result.reads) == (1, 3)


async def test_what_comes_after_the_run_is_of_no_account(serve):
    over = asyncio.Event()

    async def film(request):
        part = request.http_range
        if part.start:
            await over.wait()
        return web.Response(status=206, body=bytes(part.stop - part.start))

    client = Client(await serve(film), Playback(60.0, 60.0), EXTENT)
    result = await play(client, hold=0.05)
    over.set()
    assert (result.streams, result.incidents, result.reads) == (1, 0, 1)


async def test_an_answer_that_is_none_is_an_error(serve):
    async def film(_):
        return web.Response(status=206, body=b"short")

    url = await serve(film)
    with pytest.raises(LabError, match="2 streams were not given"):
        await play(*(Client(url, Playback(0.001, 0.001, 3), EXTENT) for _ in range(2)))


async def test_a_refusal_says_when_to_come_back(serve):
    async def film(_):
        return web.Response(status=503, headers={"Retry-After": "7"})

    client = PacedClient(await serve(film), Playback(5.0, 0.5, 4), EXTENT)
    result = await play(client)
    assert client.retry_seconds == 7.0
    assert (result.streams, result.refused) == (0, 1)


async def test_a_refusal_that_does_not_say_when_is_none(serve):
    async def film(_):
        return web.Response(status=503)

    url = await serve(film)
    with pytest.raises(LabError, match="1 streams were not given"):
        await play(PacedClient(url, Playback(5.0, 0.5, 4), EXTENT))


async def test_a_paced_stream_is_accounted_part_by_part(serve):
    async def film(_):
        return web.Response(body=bytes(4 * EXTENT))

    client = PacedClient(await serve(film), Playback(1.0, 0.5, 4), EXTENT)
    result = await play(client)
    assert (client.playback.received, result.incidents, result.reads) == (4, 0, 1)


async def test_a_paced_stream_that_goes_on_is_left_when_the_run_ends(serve):
    left = asyncio.Event()

    async def film(request):
        response = web.StreamResponse()
        response.content_length = 4 * EXTENT
        await response.prepare(request)
        await response.write(bytes(EXTENT))
        await left.wait()
        return response

    client = PacedClient(await serve(film), Playback(0.5, 0.5, 4), EXTENT)
    result = await play(client, hold=0.05)
    left.set()
    assert (client.playback.received, result.streams) == (1, 1)


async def test_a_paced_stream_that_is_cut_is_an_error(serve):
    async def film(_):
        return web.Response(body=bytes(2 * EXTENT))

    url = await serve(film)
    with pytest.raises(LabError, match="1 streams were not given"):
        await play(PacedClient(url, Playback(1.0, 0.5, 4), EXTENT))
