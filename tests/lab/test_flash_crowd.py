"""Everybody presses play at once, and the server has not connections enough: nobody fails."""

import asyncio
import contextlib
import itertools
import os
import shutil
import statistics

import aiohttp
import numpy as np
import pytest

from experiments.film import FilmSpec, make_film
from experiments.processes import Processes
from experiments.watching import PacedReader
from tests.lab.conftest import House, get
from toast.gateway import Gateway
from toast.swarm import SessionSettings, SwarmSession, parse_metainfo
from toast.viewer import FilmReader, Pace, Source, ViewerSettings, assemble_viewer, viewer_http
from vodserver.http import HttpServer
from vodserver.settings import ServeSettings
from vodserver.store import open_store

pytestmark = [pytest.mark.lab, pytest.mark.slow]

_HOSTS = (f"127.{1 + os.getpid() % 250}.60.{number}" for number in itertools.count(1))


@contextlib.asynccontextmanager
async def server_with(folder, connections):
    """The house's VoD server, once more, with so many connections in all."""
    with open_store(folder / "store") as store:
        settings = ServeSettings(port=0, http_connections=connections)
        server = HttpServer(store, settings, seed_status=None)
        await server.start()
        try:
            yield server
        finally:
            await server.close()


async def watch(metainfo, film, folder, together, until_seconds=4.0):
    """One viewer, of its own, from pressing play together with the others."""
    clock = asyncio.get_running_loop().time
    async with contextlib.AsyncExitStack() as stack:
        settings = SessionSettings(listen_host=next(_HOSTS))
        session = SwarmSession(settings)
        stack.push_async_callback(session.close)
        await session.wait_listening()
        viewer = assemble_viewer(
            Source(metainfo, metainfo.origins, ()),
            settings=ViewerSettings(folder=folder, pace=Pace.READERS),
            session=session,
            http=await stack.enter_async_context(viewer_http(settings)),
            rng=np.random.default_rng(1),
        )
        downs = []
        failed = viewer._supply._origin._failed
        viewer._supply._origin._failed = lambda *what: downs.append(what) or failed(*what)
        await together.wait()
        since = clock()
        await viewer.open()
        gateway = await stack.enter_async_context(Gateway(FilmReader(viewer)))
        running = asyncio.create_task(viewer.run())
        http = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
        player = PacedReader(metainfo.timemap, stack.enter_context(film.open("rb")), clock=clock)
        try:
            watched = await player.watch(
                http, gateway.url, since=since, until_seconds=until_seconds
            )
        finally:
            viewer.stop()
            await running
        return watched, await viewer.report(), downs


@pytest.mark.timeout(300)
async def test_many_viewers_at_once_at_a_server_with_few_connections(full, figures, tmp_path):
    """Each would open several connections for its first picture, and is let in with some.

    All of them share this machine with the server: beside them, the same crowd at a server that has
    connections for everybody.
    """
    viewers, connections = (60, 200) if full else (12, 40)
    spec = FilmSpec(duration_seconds=60.0, bit_rate=125_000.0, width=320, height=180)
    film = await asyncio.to_thread(make_film, tmp_path / "film.mp4", spec)
    async with Processes(tmp_path / "logs") as processes:
        house = House(processes, film, tmp_path)
        await house.open()
    for name, most in (("roomy", 2000), ("crowded", connections)):
        async with server_with(tmp_path, most) as server:
            metainfo = parse_metainfo(await get(f"{server.url}/titles/film/torrent"))
            together = asyncio.Barrier(viewers)
            crowd = await asyncio.gather(
                *(watch(metainfo, film, tmp_path / f"{name}-{n}", together) for n in range(viewers))
            )
            refused = server.statistics().refused
        starts = sorted(watched.start_seconds for watched, _, _ in crowd)
        figures |= {
            f"crowd_{name}_connections_refused": refused,
            f"crowd_{name}_stalls": sum(watched.stalls for watched, _, _ in crowd),
            f"crowd_{name}_wrong_bytes": sum(watched.wrong_bytes for watched, _, _ in crowd),
            f"crowd_{name}_server_down": sum(len(downs) for _, _, downs in crowd),
            f"crowd_{name}_start_p50_ms": round(statistics.median(starts) * 1e3),
            f"crowd_{name}_start_worst_ms": round(starts[-1] * 1e3),
        }
    figures |= {"crowd_viewers": viewers, "crowd_connections_of_the_server": connections}
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert figures["crowd_roomy_connections_refused"] == 0
    assert figures["crowd_crowded_connections_refused"] > 0
    assert figures["crowd_crowded_wrong_bytes"] == 0
    # So many players and a server in one program may be late by themselves.
    assert figures["crowd_crowded_stalls"] <= figures["crowd_roomy_stalls"]
    # Nor is a server that is late by itself for seconds told from one that answers nobody.
    assert figures["crowd_crowded_server_down"] <= (0 if full else viewers // 2)
