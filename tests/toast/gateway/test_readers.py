"""Players of a real viewing: each connection reads for itself, and one that leaves is gone."""

import asyncio
import contextlib

import aiohttp
import pytest

from tests.toast.viewer.conftest import FILM, World
from toast.gateway import Gateway
from toast.viewer import Behaviour, FilmReader

pytestmark = pytest.mark.slow


@pytest.fixture
async def shown(tmp_path):
    """(viewer, gateway, client, gate) of a film that comes from a server while the gate is open."""
    async with contextlib.AsyncExitStack() as stack:
        world = World(tmp_path, stack)
        await world.start()
        world.server.gate.clear()
        viewer = await world.viewer(seconds=60.0, behaviour=Behaviour.SEEDING)
        running = asyncio.create_task(viewer.run())
        gateway = await stack.enter_async_context(Gateway(FilmReader(viewer)))
        client = await stack.enter_async_context(aiohttp.ClientSession())
        yield viewer, gateway, client, world.server.gate
        viewer.stop()
        await running


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - it is told by nobody
            await asyncio.sleep(0.01)


async def test_players_at_several_places_get_what_they_ask_for(shown):
    viewer, gateway, client, gate = shown

    async def part(start, end):
        fields = {"Range": f"bytes={start}-{end - 1}"}
        async with client.get(gateway.url, headers=fields) as answer:
            assert await answer.read() == FILM[start:end]

    spans = ((0, 50_000), (500_000, 540_000), (990_000, 1_000_000), (20_000, 90_000))
    parts = [asyncio.create_task(part(*span)) for span in spans]
    await until(lambda: viewer.progress()["readers"] == len(spans))
    assert gateway.readers == len(spans)
    gate.set()
    async with asyncio.timeout(20):
        await asyncio.gather(*parts)


async def test_a_player_that_leaves_is_waited_for_no_longer(shown):
    """Its reader is gone from the viewing, and the one that stays reads on."""
    viewer, gateway, client, gate = shown
    staying = asyncio.create_task(client.get(gateway.url))
    leaving = [
        asyncio.create_task(client.get(gateway.url, headers={"Range": f"bytes={start}-"}))
        for start in (0, 300_000, 900_000)
    ]
    await until(lambda: viewer.progress()["readers"] == 4)
    for wait in leaving:
        wait.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    await until(lambda: viewer.progress()["readers"] == 1)
    assert gateway.readers == 1
    gate.set()
    async with asyncio.timeout(20), await staying as answer:
        assert await answer.content.readexactly(200_000) == FILM[:200_000]
    await asyncio.wait_for(gateway.wait_idle(), 5)
    await until(lambda: viewer.progress()["readers"] == 0)
