"""Several processes serve on one port, as operators run them: under load, killed, orphaned."""

import asyncio
import functools
import os
import signal
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from experiments.processes import Processes
from tests.lab.http_load import Crowd, Server, make_long_film
from tests.lab.test_rot import rot
from tests.vodserver.conftest import make_empty
from tests.vodserver.workers.conftest import drop_caches
from vodserver.store import add_film, open_store
from vodserver.store.layout import extent_path

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def films(tmp_path_factory, full):
    """Two films of 1.3 MB in 20 extents; with --full three of 20 MB in 80."""
    folder = tmp_path_factory.mktemp("films")
    count, seconds, rate = (3, 400.0, 50_000.0) if full else (2, 100.0, 13_000.0)
    return {
        f"film{number}": make_long_film(folder / f"film{number}.mp4", seconds=seconds, rate=rate)
        for number in range(count)
    }


@pytest.fixture
async def server(films, tmp_path):
    """Two workers over a store on four disks that has the films, none of them in memory."""
    path = make_empty(tmp_path)
    with open_store(path) as store:
        for number, film in enumerate(films.values()):
            add_film(store, film, rng=np.random.default_rng(number))
        titles = store.titles()
    async with Processes(tmp_path / "logs") as processes:
        server = Server(processes, tmp_path)
        server.titles = titles
        drop_caches(*replicas_of(server))
        await server.start("--no-seed", "--workers", "2")
        yield server


def replicas_of(server):
    return [
        extent_path(server.disks[disk], title.folder, extent.number)
        for title in server.titles
        for extent in title.extents
        for disk in extent.disks
    ]


def workers_of(pid):
    """The process numbers of a process's children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def is_there(pid):
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def listeners(url):
    """How many sockets listen on a port."""
    port = f":{int(url.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(line[1].endswith(port) and line[3] == "0A" for line in lines)


async def until(holds, seconds):
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - other processes wake nobody
            await asyncio.sleep(0.01)


async def status_of(server):
    await asyncio.sleep(0.5)
    async with aiohttp.ClientSession(server.url) as http, http.get("/status") as answer:
        return await answer.json()


async def test_replicas_rot_and_vanish_under_load_and_nobody_notices(server, films, full, figures):
    """Cold at first; then, of every extent, one replica is removed while they read, or rots.

    While it rots they pause: a page that was tested, and is thrown out of memory by the write that
    plays the rot before it is sent, is sent as it comes from the disk (docs/disks.md).
    """
    clients = 48 if full else 16
    rng = np.random.default_rng(3)
    async with Crowd(server.url, films, clients) as crowd:
        await crowd.wait_requests(4 * clients)
        rotting = []
        for title in server.titles:
            for extent in title.extents:
                disk = int(rng.choice(extent.disks))
                path = extent_path(server.disks[disk], title.folder, extent.number)
                if rng.random() < 0.5:
                    path.unlink()
                else:
                    rotting.append((path, int(rng.integers(extent.size))))
        await crowd.wait_requests(4 * clients)
        async with crowd.paused():
            for path, offset in rotting:
                await asyncio.to_thread(rot, path, offset)
        drop_caches(*(path for path in replicas_of(server) if path.exists()))
        await crowd.wait_requests((100 if full else 20) * clients)
    status = await status_of(server)
    pids = workers_of(server.child.pid)
    await server.stop()

    figures.update(crowd.load.figures("workers"))
    assert crowd.load.wrong_bytes == 0
    assert crowd.load.failed_requests == 0, crowd.load.faults
    assert len(pids) == 2
    assert status["http_bytes_sent"] > crowd.load.read_bytes
    assert not [pid for pid in pids if is_there(pid)]


async def test_films_added_and_removed_under_load_are_seen_by_all(
    server, films, small_film, figures
):
    async def codes(path):
        """What so many connections of their own are answered: the kernel deals them out."""
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(server.url, connector=connector) as http:
            found = set()
            for _ in range(24):
                async with http.get(path) as answer:
                    await answer.read()
                    found.add(answer.status)
            return found

    async with Crowd(server.url, films, 8) as crowd:
        await crowd.wait_requests(16)
        assert await codes("/titles/extra") == {404}
        await server.run("add", str(small_film), "--name", "extra")
        assert await codes("/titles/extra") == {200}
        assert await codes("/titles/extra/content") == {200}
        await server.run("remove", "extra")
        assert await codes("/titles/extra/content") == {404}
        await crowd.wait_requests(16)
    await server.stop()
    assert (crowd.load.wrong_bytes, crowd.load.failed_requests) == (0, 0), crowd.load.faults


def _replaced(server, victim):
    there = workers_of(server.child.pid)
    return len(there) == 2 and victim not in there


async def test_a_worker_killed_under_load_breaks_its_connections_and_no_others(
    server, films, full, figures
):
    """Clients ask again at once and are served; the main process and the counts go on."""
    clients, kills = (32, 8) if full else (12, 2)
    async with Crowd(server.url, films, clients) as crowd:
        for _ in range(kills):
            await crowd.wait_requests(4 * clients)
            victim, other = workers_of(server.child.pid)
            failed = crowd.load.failed_requests
            os.kill(victim, signal.SIGKILL)
            await crowd.wait_requests(4 * clients)
            assert crowd.load.failed_requests - failed <= 2 * clients
            await until(functools.partial(_replaced, server, victim), 10)
            await until(lambda: listeners(server.url) == 2, 10)
            assert other in workers_of(server.child.pid)
        failed = crowd.load.failed_requests
        await crowd.wait_requests(8 * clients)
        assert crowd.load.failed_requests == failed
    status = await status_of(server)
    again = await status_of(server)
    figures.update(worker_kills=kills, worker_wrong_bytes=crowd.load.wrong_bytes)
    assert crowd.load.wrong_bytes == 0
    assert 1000 < again["http_bytes_sent"] - status["http_bytes_sent"] < 4000
    assert status["http_connections"] == 1
    await server.stop()


async def test_when_the_main_process_is_killed_no_worker_stays(server, films, figures):
    """And what it had is free: the next server starts on the same port."""
    pids = workers_of(server.child.pid)
    port = server.url.rpartition(":")[2]
    async with Crowd(server.url, films, 8) as crowd:
        await crowd.wait_requests(16)
        loop = asyncio.get_running_loop()
        os.kill(server.child.pid, signal.SIGKILL)
        began = loop.time()
        await until(lambda: not any(is_there(pid) for pid in pids), 5)
        seconds = loop.time() - began
    figures["orphan_seconds"] = round(seconds, 2)
    assert len(pids) == 2
    assert seconds < 2
    await server.child.wait_end()

    await server.start("--no-seed", "--workers", "2", "--port", port)
    async with Crowd(server.url, films, 4) as crowd:
        await crowd.wait_requests(8)
    await server.stop()
    assert (crowd.load.wrong_bytes, crowd.load.failed_requests) == (0, 0), crowd.load.faults


async def test_only_the_main_process_reads_the_disks_one_read_at_a_time_each(server, films):
    """What a cold crowd wants over two workers is read once; each disk is busy one read a time."""
    async with Crowd(server.url, films, 16) as crowd:
        began = asyncio.get_running_loop().time()
        await crowd.wait_requests(200)
        seconds = asyncio.get_running_loop().time() - began
    disks = (await status_of(server))["disks"]
    await server.stop()

    size = sum(title.film_bytes for title in server.titles)
    assert sum(disk["read_bytes"] for disk in disks) <= 2.2 * size  # from two disks each, at most
    assert sum(disk["resident_bytes"] for disk in disks) > crowd.load.read_bytes / 2
    for disk in disks:
        # Two reads under way at a time would take more seconds than have passed.
        assert disk["service_seconds"] <= seconds + 1
        assert disk["disk_reads"] > 0
