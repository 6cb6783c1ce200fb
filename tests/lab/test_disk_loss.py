"""Disks are lost while viewers watch: they do not notice, and the store becomes whole again."""

import asyncio
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from experiments.processes import Processes
from tests.lab.http_load import Crowd, Server, make_long_film
from tests.vodserver.conftest import DISKS, make_empty
from vodserver.errors import DiskError
from vodserver.http import HttpServer
from vodserver.settings import ServeSettings
from vodserver.store import add_film, open_store
from vodserver.store.disks import RealDisk
from vodserver.store.upkeep import Keeper, UpkeepSettings, workshop_of
from vodserver.store.upkeep.status import store_status

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(180)]

QUICK = UpkeepSettings(
    probe_interval_seconds=0.1,
    write_probe_interval_seconds=0.2,
    absent_grace_seconds=0.3,
    full_below_bytes=0,
    scrub=False,
)


@pytest.fixture(scope="module")
def films(tmp_path_factory, full):
    """Three films of 1.3 MB in 20 extents; with --full four of 20 MB in 80."""
    folder = tmp_path_factory.mktemp("films")
    count, seconds, rate = (4, 400.0, 50_000.0) if full else (3, 100.0, 13_000.0)
    return {
        f"film{number}": make_long_film(
            folder / f"film{number}.mp4", seconds=seconds, rate=rate, seed=number + 1
        )
        for number in range(count)
    }


@pytest.fixture
def filled(films, tmp_path):
    """A store on four disks that has the films."""
    path = make_empty(tmp_path)
    with open_store(path) as store:
        for number, film in enumerate(films.values()):
            add_film(store, film, rng=np.random.default_rng(number))
    return path


async def test_a_disk_deleted_under_load_is_not_noticed_and_replaced(
    films, filled, tmp_path, full, figures
):
    clients = 32 if full else 16
    told = []
    async with Processes(tmp_path / "logs") as processes:
        server = Server(processes, tmp_path)
        await server.start("--no-seed")
        async with Crowd(server.url, films, clients) as crowd:
            await crowd.wait_requests(4 * clients)
            await asyncio.to_thread(shutil.rmtree, server.disks[1])
            await crowd.wait_requests((60 if full else 8) * clients)
            began = time.monotonic()
            new = str(tmp_path / "new")
            child = await server.run("disk", "replace", "1", new, "--json", on_event=told.append)
            seconds = time.monotonic() - began
            fsck = await server.run("fsck", "--deep", "--json")
            status = await server.run("status", "--json", on_event=told.append)
            await crowd.wait_requests(4 * clients)
        await server.stop()
        again = await server.run("fsck", "--deep")
    assert status.returncode == fsck.returncode == again.returncode == 0
    progress = [event for event in told if event.get("event") == "progress"]
    replaced = child.event("replaced")
    figures.update(crowd.load.figures("disk_loss"))
    figures.update(
        disk_loss_clients=clients,
        disk_loss_replicas_remade=replaced["replicas"],
        disk_loss_replace_seconds=round(seconds, 2),
        disk_loss_progress_lines=len(progress),
    )
    assert (crowd.load.wrong_bytes, crowd.load.faults) == (0, ())
    assert crowd.load.failed_requests == 0
    assert progress[-1]["done"] == progress[-1]["total"] == len(progress) > 0
    assert replaced["failed"] == 0
    with open_store(filled) as store:
        told = await store_status(workshop_of(store))
        assert store.disk_paths[1] == Path(new)
    assert told["replicas_there"] == told["replicas_wanted"] == 2 * told["extents"]
    assert told["under_replicated_extents"] == told["bad_replicas"] == 0


class BrokenDisk:
    """A real disk that fails every read once it is told to, as one with EIO does."""

    broken: set[Path] = set()  # noqa: RUF012 - the one switch of all disks of a test

    def __init__(self, path):
        self._disk = RealDisk(path)
        self.path, self.paged = path, False

    def read(self, extent, offset, length, *, direct=False):
        if self.path in self.broken:
            raise DiskError(f"cannot read from {self.path}: Input/output error")
        return self._disk.read(extent, offset, length, direct=direct)

    def file(self, extent):
        return self._disk.file(extent)

    def peek(self, extent, offset, length):
        return None

    def close(self):
        self._disk.close()


@pytest.fixture
def broken():
    BrokenDisk.broken = set()
    yield BrokenDisk.broken
    BrokenDisk.broken = set()


class InProcess:
    """A server and its keeper in this loop, with settings that do not wait."""

    def __init__(self, store):
        self.store = store
        self.http = HttpServer(store, ServeSettings(port=0), seed_status=None)
        self.keeper = Keeper(store, QUICK, rng=np.random.default_rng(1))

    async def __aenter__(self):
        await self.http.start()
        await self.keeper.start()
        return self

    async def __aexit__(self, *_):
        await self.keeper.close()
        await self.http.close()

    async def wait_status(self, condition, seconds=20.0):
        """Wait until the status is as wished; returns it."""
        async with asyncio.timeout(seconds):
            while True:
                status = await store_status(workshop_of(self.store))
                if condition(status):
                    return status
                await asyncio.sleep(0.05)


def whole(status):
    return (
        status["replicas_there"] == status["replicas_wanted"]
        and status["under_replicated_extents"] == 0
        and status["bad_replicas"] == 0
    )


async def test_a_disk_with_input_output_errors_is_failing_and_what_it_had_goes_elsewhere(
    films, filled, broken, figures, full
):
    with open_store(filled, make_disk=BrokenDisk) as store:
        async with InProcess(store) as server, Crowd(server.http.url, films, 8) as crowd:
            await crowd.wait_requests(40)
            broken.add(store.disk_paths[2])
            status = await server.wait_status(lambda told: told["disks"][2]["state"] == "failing")
            await crowd.wait_requests(400 if full else 100)
            assert "reads failed" in status["disks"][2]["reason"]
            await server.wait_status(lambda told: told["bad_replicas"] == 0)
            await crowd.wait_requests(40)
    figures.update(crowd.load.figures("disk_errors"))
    assert (crowd.load.wrong_bytes, crowd.load.faults) == (0, ())


async def test_a_mount_point_that_vanishes_and_comes_back(films, filled, figures, full):
    """Its replicas are made elsewhere after the grace; when it is back, it is checked and used."""
    disk = filled.parent / "disk3"
    with open_store(filled) as store:
        async with InProcess(store) as server, Crowd(server.http.url, films, 8) as crowd:
            await crowd.wait_requests(40)
            disk.rename(disk.with_name("away"))
            await server.wait_status(lambda told: told["disks"][3]["state"] == "absent")
            assert 3 not in store.disk_paths
            status = await server.wait_status(whole)
            assert status["disks"][3]["used_bytes"] == 0
            disk.with_name("away").rename(disk)
            await server.wait_status(lambda told: told["disks"][3]["state"] == "ok")
            await crowd.wait_requests(400 if full else 80)
            async with asyncio.timeout(20):
                while list(disk.glob("extents/*/*")):  # noqa: ASYNC110 - the sweep tells nobody
                    await asyncio.sleep(0.05)
        assert store.catalog.garbage() == []
    figures.update(crowd.load.figures("mount_vanished"))
    assert (crowd.load.wrong_bytes, crowd.load.faults) == (0, ())


async def test_a_mount_point_that_is_back_within_the_grace_loses_nothing(films, filled):
    disk = filled.parent / "disk0"
    with open_store(filled) as store:
        placed = store.titles()
        server = InProcess(store)
        server.keeper = Keeper(
            store, UpkeepSettings(probe_interval_seconds=0.1, scrub=False), rng=None
        )
        async with server, Crowd(server.http.url, films, 8) as crowd:
            await crowd.wait_requests(20)
            disk.rename(disk.with_name("away"))
            await server.wait_status(lambda told: told["disks"][0]["state"] == "absent")
            await crowd.wait_requests(20)
            disk.with_name("away").rename(disk)
            await server.wait_status(whole)
            await crowd.wait_requests(20)
        assert store.titles() == placed
        assert len(store.disk_paths) == DISKS
    assert (crowd.load.wrong_bytes, crowd.load.faults) == (0, ())
