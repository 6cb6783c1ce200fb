"""nginx over emulated disks that are mounted: it reads the very bytes, and nothing stays behind."""

import asyncio
import json
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from experiments.arrays.disk import DiskModel
from experiments.arrays.mounted import MountSpec, film_name, mounted_command, write_spec
from experiments.arrays.nginx import BEST, WAYS, nginx_command
from experiments.errors import ProcessError
from experiments.processes import Processes
from experiments.real.house import Net
from tests.experiments.arrays.mounts import need_mounts

pytestmark = [pytest.mark.interop, pytest.mark.slow]

DISK = DiskModel(access_seconds=0.002, rate=50e6)
EXTENT = 245_760
FILMS = (0, 1, 2, 6)


@pytest.fixture(autouse=True)
def here(tmp_path):
    """Skip, and say why, where this cannot be done."""
    need_mounts(tmp_path)


@pytest.fixture
def films(tmp_path):
    """Their bytes by number, in a folder."""
    folder = tmp_path / "films"
    folder.mkdir()
    rng = np.random.default_rng(1)
    found = {number: rng.bytes(4 * EXTENT) for number in FILMS}
    for number, data in found.items():
        (folder / film_name(number)).write_bytes(data)
    return found


def spec_of(tmp_path, net, way=BEST, **more):
    mount, path = tmp_path / "mount", tmp_path / "spec.json"
    mount.mkdir()
    host = net.server_host
    command = nginx_command(WAYS[way], prefix=tmp_path / "nginx", root=mount, host=host, port=8080)
    write_spec(
        path,
        MountSpec(
            **{
                "disk": asdict(DISK),
                "disks": 3,
                "films": str(tmp_path / "films"),
                "mount": str(mount),
                "command": command,
                "host": host,
                "port": 8080,
                "faults": str(tmp_path / "faults.json"),
                "seed": 1,
                "paged": WAYS[way].paged,
                "read_ahead": WAYS[way].read_ahead,
            }
            | more
        ),
    )
    return path


async def read(http, url, first, size):
    async with http.get(url, headers={"Range": f"bytes={first}-{first + size - 1}"}) as answer:
        return answer.status, await answer.read()


@pytest.mark.parametrize(
    ("way", "more"),
    [
        (BEST, {}),
        (BEST, {"unit": EXTENT}),
        (BEST, {"unit": 10_000, "order": "elevator", "joins": True}),
        ("direct, 2 x 2 KiB", {}),
        ("sendfile", {}),
        ("sendfile in threads", {"unit": 4096}),
    ],
)
async def test_nginx_reads_the_very_bytes(tmp_path, films, way, more):
    with Net() as net:
        spec = spec_of(tmp_path, net, way, **more)
        async with Processes(tmp_path / "logs") as processes, aiohttp.ClientSession() as http:
            child = await processes.start("nginx", mounted_command(spec))
            url = (await child.wait_event("listening", timeout_seconds=30))["url"]
            chance = np.random.default_rng(2)
            wanted = []
            for _ in range(24):
                film = int(chance.choice(FILMS))
                first = int(chance.integers(4 * EXTENT))
                size = int(chance.integers(1, min(EXTENT, 4 * EXTENT - first) + 1))
                wanted.append((film, first, size))
            wanted += [(film, 0, 4 * EXTENT) for film in FILMS]
            told = await asyncio.gather(
                *(read(http, f"{url}/{film_name(film)}", *part) for film, *part in wanted)
            )
            for (film, first, size), (status, data) in zip(wanted, told, strict=True):
                assert status == 206
                assert data == films[film][first : first + size]
            status, _ = await read(http, f"{url}/{film_name(3)}", 0, 10)
            assert status == 404
            await child.stop()
            disks = child.event("disks")["disks"]
        assert all(disk["reads"] > 0 for disk in disks)


async def test_a_disk_takes_its_time_and_its_faults(tmp_path, films):
    slow = asdict(DiskModel(access_seconds=0.1, rate=EXTENT / 0.1, jitter_share=0.0))
    with Net() as net:
        spec = spec_of(tmp_path, net, disk=slow)
        async with Processes(tmp_path / "logs") as processes, aiohttp.ClientSession() as http:
            child = await processes.start("nginx", mounted_command(spec))
            url = (await child.wait_event("listening", timeout_seconds=30))["url"]

            async def extent(film, number):
                return await read(http, f"{url}/{film_name(film)}", number * EXTENT, EXTENT)

            began = time.monotonic()
            # Films 0 and 6 lie on the first disk: four reads of 0.2 s, one after the other.
            await asyncio.gather(extent(0, 3), extent(6, 1), extent(0, 0), extent(6, 3))
            assert time.monotonic() - began >= 0.8
            faults = tmp_path / "faults.json"
            faults.write_text(json.dumps([{"disk": 0, "kind": "death", "share": 1.0}]))
            with pytest.raises(aiohttp.ClientError):
                await extent(0, 1)
            status, data = await extent(1, 1)
            assert (status, data) == (206, films[1][EXTENT : 2 * EXTENT])


async def test_nothing_stays_behind_when_it_is_killed(tmp_path, films):
    del films
    with Net() as net:
        spec = spec_of(tmp_path, net)
        async with Processes(tmp_path / "logs") as processes:
            child = await processes.start("nginx", mounted_command(spec))
            await child.wait_event("listening", timeout_seconds=30)
            os.kill(child.pid, signal.SIGKILL)
            assert await child.wait_end() == -signal.SIGKILL
            assert await asyncio.to_thread(_left_of, child.pid) == []
    assert _shown_in(tmp_path / "mount") == []


async def test_what_goes_wrong_is_a_line(tmp_path, films):
    del films
    with Net() as net:
        spec = spec_of(tmp_path, net, mount=str(tmp_path / "nowhere"))
        async with Processes(tmp_path / "logs") as processes:
            child = await processes.start("nginx", mounted_command(spec))
            with pytest.raises(ProcessError, match=r"nowhere cannot be mounted.*No such file"):
                await child.wait_event("listening", timeout_seconds=30)
        write_spec(spec, MountSpec(**(json.loads(spec.read_text()) | _without_end(tmp_path))))
        async with Processes(tmp_path / "logs") as processes:
            child = await processes.start("nginx", mounted_command(spec))
            with pytest.raises(ProcessError, match="true ended before it listened"):
                await child.wait_event("listening", timeout_seconds=30)


def _without_end(tmp_path):
    return {"mount": str(tmp_path / "mount"), "command": ["true"]}


def _left_of(session):
    """Processes of a session that still run, once they have had time to end."""
    until = time.monotonic() + 10
    while (left := _session(session)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _shown_in(folder):
    """Where it is mounted, or what is in it."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in mounts if str(folder) in line] + list(folder.iterdir())


def _session(number):
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] != "Z":
            found.append(entry)
    return found
