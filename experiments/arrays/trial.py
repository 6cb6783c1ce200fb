"""One run of a comparison of servers: paced clients, or clients that ask as fast as they can."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any, Final

import aiohttp
import numpy as np

from experiments.arrays.clients import Client
from experiments.arrays.demand import DEMANDS, asked, places
from experiments.arrays.library import Library
from experiments.arrays.playback import Playback
from experiments.arrays.result import conclude
from experiments.arrays.rivals import Rival, Serving, cpu_seconds, serving
from experiments.arrays.scenario import ArrayScenario
from experiments.errors import LabError
from experiments.real.house import Net, run_folder

__all__ = ["play", "pull"]

_LOOK_SECONDS: Final = 0.25


async def play(
    rival: Rival,
    scenario: ArrayScenario,
    library: Library,
    demand: str,
    streams: int,
    *,
    seed: int,
    folder: Path,
    to_the_end: bool = False,
) -> dict[str, Any]:
    """Let so many paced clients play.

    Args:
        rival: from which server.
        scenario: the array.
        library: its films.
        demand: which films are asked for, one of `DEMANDS`.
        streams: how many clients.
        seed: of films, beginnings and access times.
        folder: where the run keeps its files; they are removed.
        to_the_end: go on when a client has starved.

    Returns:
        The fields of an `ArrayResult`, and what it cost to compute.

    Raises:
        LabError: the server did not start, or a client was not given what it asked for.
    """
    load = DEMANDS[demand]
    disks = len(scenario.disks)
    films = places(asked(load, disks, streams, seed), disks)
    chance = np.random.default_rng([seed, 9])
    begins = chance.uniform(0, scenario.load.window_seconds, streams).tolist()
    busy = round(os.getloadavg()[0], 2)
    with run_folder(folder) as place, Net() as net:
        async with serving(
            rival, scenario, library, seed=seed, faults=load.faults, place=place, net=net
        ) as server:
            clients = [
                Client(
                    server.url(film),
                    Playback(scenario.lead_seconds, scenario.extent_seconds, library.extents),
                    scenario.unit_bytes,
                )
                for film in films
            ]
            meter = _Meter(server)
            until = await _play(scenario, clients, begins, to_the_end=to_the_end)
            cost = meter.stop()
    if failures := sum(client.failures for client in clients):
        raise LabError(f"{failures} streams were not given what they asked for")
    for client in clients:
        client.playback.end(until)
    responses = [seconds for client in clients for seconds in client.responses]
    result = conclude(
        incidents=[client.playback.incidents for client in clients],
        responses=responses,
        refused=0,
        lost=0,
        reads=len(responses),
        busy_share=None,
        hit_share=None,
        model_streams=scenario.model_streams,
    )
    return {"load_before": busy, **result.to_dict(), **cost}


async def _play(
    scenario: ArrayScenario, clients: list[Client], begins: list[float], *, to_the_end: bool
) -> float:
    """Play until the run is over, or a client has starved; when that was."""
    http = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
    )
    async with http:
        start = time.monotonic() + 0.5
        until = start + scenario.load.window_seconds + scenario.hold_seconds

        async def watch() -> None:
            while (now := time.monotonic()) < until:
                if not to_the_end and any(_starves(client, now) for client in clients):
                    return
                await asyncio.sleep(_LOOK_SECONDS)

        playing = [
            asyncio.create_task(client.play(http, start + begin, until))
            for client, begin in zip(clients, begins, strict=True)
        ]
        try:
            await watch()
            ended = time.monotonic()
            # A read that is under way is of no matter to what was seen.
            for task in playing:
                if not task.done():
                    task.cancel()
            for told in await asyncio.gather(*playing, return_exceptions=True):
                if isinstance(told, Exception):
                    raise LabError(f"a client was not answered: {told}") from told
        finally:
            for task in playing:
                task.cancel()
    return min(ended, until)


def _starves(client: Client, now: float) -> bool:
    playback = client.playback
    return bool(playback.incidents) or (not playback.is_complete and now > playback.empty_at())


async def pull(
    rival: Rival,
    scenario: ArrayScenario,
    library: Library,
    streams: int,
    *,
    seconds: float,
    seed: int,
    folder: Path,
) -> dict[str, Any]:
    """Let so many clients ask for extents at random, one after the other, each from its own film.

    Returns:
        How many streams that would feed, and what it cost to compute.

    Raises:
        LabError: the server did not start, or a client was not given what it asked for.
    """
    extent = scenario.unit_bytes
    came = 0
    with run_folder(folder) as place, Net() as net:
        async with serving(
            rival, scenario, library, seed=seed, faults=(), place=place, net=net
        ) as server:
            timeout = aiohttp.ClientTimeout(total=None)
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:

                async def ask(film: int) -> None:
                    nonlocal came
                    # No extent twice: what is in the kernel's memory tells nothing of disks.
                    chance = np.random.default_rng([seed, film])
                    for number in chance.permutation(library.extents).tolist():
                        first = number * extent
                        span = f"bytes={first}-{first + extent - 1}"
                        async with http.get(server.url(film), headers={"Range": span}) as answer:
                            if answer.status != 206:
                                raise LabError(f"it answers with status {answer.status}")
                            async for part in answer.content.iter_any():
                                came += len(part)

                meter = _Meter(server)
                tasks = [asyncio.create_task(ask(film)) for film in range(streams)]
                try:
                    _, _ = await asyncio.wait(
                        tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION
                    )
                    cost, brought = meter.stop(), came
                finally:
                    for task in tasks:
                        task.cancel()
                for told in await asyncio.gather(*tasks, return_exceptions=True):
                    if isinstance(told, Exception):
                        raise LabError(f"a client was not answered: {told}") from told
    return {"streams_worth": round(brought / seconds / scenario.stream_rate, 1), **cost}


class _Meter:
    """What a run costs to compute, as shares of one core."""

    def __init__(self, server: Serving) -> None:
        self._session = server.child.pid
        self._began = time.monotonic(), cpu_seconds(self._session), time.process_time()

    def stop(self) -> dict[str, float]:
        wall, server, own = self._began
        passed = time.monotonic() - wall
        return {
            "server_cores": round((cpu_seconds(self._session) - server) / passed, 3),
            "client_cores": round((time.process_time() - own) / passed, 3),
        }
