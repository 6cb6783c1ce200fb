"""Bit rot: bytes change on a disk. Nobody is given one of them, and all are repaired."""

import asyncio
import hashlib
import mmap
import os

import aiohttp
import bencode2
import numpy as np
import pytest

from experiments.processes import Processes
from tests.lab.http_load import Crowd, Server, make_long_film
from tests.vodserver.conftest import StockClient, make_empty
from vodserver.store import add_film, open_store
from vodserver.store.layout import extent_path

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(240)]

SEED_HOST, PEER_HOST = "127.33.0.1", "127.33.0.2"
_BLOCK = mmap.PAGESIZE


@pytest.fixture(scope="module")
def film(tmp_path_factory, full):
    """A film in 300 extents: of 64 KiB, or with --full of 256 KiB in 400."""
    seconds, rate = (2000.0, 50_000.0) if full else (1500.0, 12_500.0)
    return make_long_film(tmp_path_factory.mktemp("film") / "film.mp4", seconds=seconds, rate=rate)


def on_disk(path):
    """What the disk holds, read beside the page cache: other looks change what is in that.

    Where the file system has no such reads, it is what the page cache says.
    """
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    try:
        size = os.fstat(fd).st_size
        with mmap.mmap(-1, -(-size // _BLOCK) * _BLOCK) as buffer:
            assert os.preadv(fd, [buffer], 0) == size
            return buffer[:size]
    finally:
        os.close(fd)


def rot(path, offset):
    """Change a byte on the disk, as rot does: beside the page cache, and no time tells of it."""
    before = path.stat()
    path.chmod(0o644)
    fd = os.open(path, os.O_RDWR | getattr(os, "O_DIRECT", 0))
    try:
        with mmap.mmap(-1, _BLOCK) as block:
            at = offset // _BLOCK * _BLOCK
            assert os.preadv(fd, [block], at) > offset - at
            block[offset - at] ^= 0x40
            os.pwritev(fd, [block], at)
        os.ftruncate(fd, before.st_size)
    finally:
        os.close(fd)
    path.chmod(0o444)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def rot_some(server, title, share, rng):
    """Rot in one replica of so many of the extents; the paths, and what they held."""
    count = max(3, -(-len(title.extents) * share // 1))
    kept = {}
    for number in rng.choice(len(title.extents), size=int(count), replace=False).tolist():
        extent = title.extents[number]
        disk = int(rng.choice(extent.disks))
        path = extent_path(server.disks[disk], title.folder, number)
        kept[path] = on_disk(path)
        rot(path, int(rng.integers(0, extent.size)))
        assert on_disk(path) != kept[path]
    return kept


def healed(kept):
    return sum(on_disk(path) == held for path, held in kept.items())


async def wait_healed(kept, seconds=30.0):
    """What was found by a reader is repaired soon after."""
    async with asyncio.timeout(seconds):
        while healed(kept) < len(kept):  # noqa: ASYNC110 - another program repairs
            await asyncio.sleep(0.1)


async def test_rot_there_at_start_and_rot_while_running(film, tmp_path, full, figures):
    rng = np.random.default_rng(11)
    with open_store(make_empty(tmp_path)) as store:
        title = add_film(store, film, rng=rng)
    films = {title.id: film}
    clients = 32 if full else 16
    async with Processes(tmp_path / "logs") as processes:
        server = Server(processes, tmp_path)
        old = rot_some(server, title, 0.01, rng)
        await server.start("--seed-host", SEED_HOST)
        async with Crowd(server.url, films, clients) as crowd:
            peer, alerts = await download_from_seed(server, title, tmp_path)
            await crowd.wait_requests(4 * clients)
            first = (await server.run("scrub", "--json")).event("scrubbed")
            await wait_healed(old)

            # Rot leaves the page cache alone. The write that plays it does not: it would change
            # what is on its way into a connection at that moment.
            async with crowd.paused():
                new = rot_some(server, title, 0.01, rng)
            second = (await server.run("scrub", "--json")).event("scrubbed")
            await wait_healed(new)
            await crowd.wait_requests(2 * clients)
            status = (await server.run("fsck", "--deep", "--json")).returncode
        last = (await server.run("scrub", "--restart", "--json")).event("scrubbed")
        await server.stop()
    figures.update(crowd.load.figures("rot"))
    figures.update(
        rot_extents=len(title.extents),
        rot_at_start=len(old),
        rot_at_start_repaired=healed(old),
        rot_at_start_left_to_the_scrub=first["bad"],
        rot_while_running=len(new),
        rot_while_running_repaired=healed(new),
        rot_while_running_left_to_the_scrub=second["bad"],
        rot_seed_bans=sum("peer_ban_alert" in alert for alert in alerts),
        rot_seed_hash_failures=sum("hash_failed_alert" in alert for alert in alerts),
        rot_replicas_in_the_end_bad=last["bad"],
    )
    assert (crowd.load.wrong_bytes, crowd.load.faults) == (0, ())
    assert hashlib.sha256(peer).hexdigest() == title.sha256
    assert not [alert for alert in alerts if "ban" in alert or "hash_failed" in alert]
    assert len(old) >= 3
    assert len(new) >= 3
    assert first["bad"] == first["repaired"]
    assert second["bad"] == second["repaired"]
    assert status == 0
    assert (last["checked"], last["bad"]) == (2 * len(title.extents), 0)


async def download_from_seed(server, title, folder):
    """A stock client gets the film from the seed alone; its bytes and what it was alerted of."""
    async with aiohttp.ClientSession(server.url) as http:
        torrent = await (await http.get(f"/titles/{title.id}/torrent")).read()
    (folder / "peer").mkdir()
    client = StockClient(torrent, folder / "peer", PEER_HOST)
    try:
        await client.download(SEED_HOST, server.seed_port, seconds=60)
        name = bencode2.bdecode(title.info)[b"name"].decode()
        return (folder / "peer" / name).read_bytes(), client.alerts
    finally:
        client.close()
