"""Every baseline in a swarm of its own kind, with the real server and tracker."""

import asyncio
import os

import aiohttp
import numpy as np
import pytest

from experiments.film import FilmSpec, make_film
from experiments.processes import Processes, program
from experiments.real.client import ClientContext, create_client
from experiments.swarms.scenario import Arrivals, Client, Film, Link, Scenario

FILM_SECONDS = 3.0
VIEWERS = 2
UPLOAD_RATE = 400_000.0
BASELINES = [client for client in Client if client is not Client.TOAST]
NET = 1 + os.getpid() % 250

pytestmark = [pytest.mark.lab, pytest.mark.slow]


class House:
    """Tracker and server with one film, at addresses that no other run has."""

    def __init__(self, film, server, title):
        self.film = film
        self.server = server
        self.source = f"{server}/titles/{title}"

    async def sent(self):
        async with aiohttp.ClientSession() as http, http.get(f"{self.server}/status") as answer:
            return (await answer.json())["http_bytes_sent"]

    async def watch(self, scenario, viewer, folder, began_at):
        """One viewer from its arrival to its row, and its file."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(began_at + viewer.arrives_seconds - loop.time())
        host = f"127.{NET}.7.{viewer.number + 1}"
        connector = aiohttp.TCPConnector(local_addr=(host, 0))
        async with aiohttp.ClientSession(connector=connector) as http:
            client = create_client(
                ClientContext(
                    scenario=scenario,
                    viewer=viewer,
                    source=self.source,
                    listen_host=host,
                    folder=folder / str(viewer.number),
                    http=http,
                    began_at=began_at,
                    rng=np.random.default_rng(1),
                )
            )
            await client.run()
        return client.row()


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    spec = FilmSpec(duration_seconds=FILM_SECONDS, bit_rate=125_000.0, width=320, height=180)
    return make_film(tmp_path_factory.mktemp("film") / "film.mp4", spec)


@pytest.fixture
async def house(tmp_path, film):
    store, server = ("--store", str(tmp_path / "store")), program("vodserver")
    disks = [arg for name in ("a", "b") for arg in ("--disk", str(tmp_path / name))]
    async with Processes(tmp_path / "logs") as processes:
        tracker = await processes.start(
            "tracker", [program("toast-tracker"), "serve", "--port", "0", "--json"]
        )
        await processes.run("init", [server, "init", *store, *disks])
        await processes.run("add", [server, "add", *store, str(film), "--json"])
        announce = (await tracker.wait_event("listening", timeout_seconds=20))["announce_url"]
        command = [server, "serve", *store, "--port", "0", "--json", "--no-seed"]
        serving = await processes.start("server", [*command, "--tracker", announce])
        url = (await serving.wait_event("listening", timeout_seconds=20))["url"].rstrip("/")
        async with aiohttp.ClientSession() as http, http.get(f"{url}/titles") as answer:
            title = (await answer.json())[0]["id"]
        yield House(film.read_bytes(), url, title)


@pytest.mark.parametrize("client", BASELINES)
async def test_a_swarm_of_baselines_plays_the_film_and_counts_whom_it_came_from(
    client, house, tmp_path
):
    size = len(house.film)
    # Who comes 0.7 s after another can have of it only what is asked for late.
    options = {"give_up_seconds": 0.3} if client is Client.NAIVE else {}
    scenario = Scenario(
        client=client,
        client_options=options,
        film=Film(bit_rate_bps=8 * size / FILM_SECONDS, duration_seconds=FILM_SECONDS),
        viewers=VIEWERS,
        arrivals=Arrivals(spacing_seconds=0.7),
        links=(Link(upload_bps=8 * UPLOAD_RATE),),
    )
    before = await house.sent()
    began_at = asyncio.get_running_loop().time()
    rows = await asyncio.gather(
        *(house.watch(scenario, viewer, tmp_path, began_at) for viewer in scenario.crowd())
    )
    served = await house.sent() - before

    assert all(row.is_right and row.played_bytes == size for row in rows)
    assert all(row.start_seconds + row.stall_seconds < FILM_SECONDS for row in rows)
    assert all(row.is_within_cap for row in rows)
    for row in rows:
        received = row.bytes_from_peers + row.bytes_from_origin
        assert received - row.bytes_regretted == size
        assert row.bytes_from_seed == 0
    receipts = sum(row.bytes_from_origin for row in rows)
    assert receipts <= served <= 1.02 * receipts + sum(row.bytes_wasted for row in rows) + 40_000
    if client is Client.UNICAST:
        assert all(row.bytes_uploaded == 0 for row in rows)
    else:
        for number in range(VIEWERS):
            assert next((tmp_path / str(number)).iterdir()).read_bytes() == house.film
    if client is Client.NAIVE:
        assert rows[1].bytes_from_peers > 0.1 * size
        assert rows[0].bytes_uploaded >= rows[1].bytes_from_peers
