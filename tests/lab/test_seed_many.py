"""Many titles in one seed: what they cost."""

import asyncio
import dataclasses
import hashlib
import os
import resource
import time
from pathlib import Path

import bencode2
import numpy as np
import pytest

from experiments.film import FilmSpec, make_film
from tests.vodserver.conftest import StockClient, make_empty
from vodserver.seed import Seed, SeedSettings
from vodserver.store import add_film, open_store
from vodserver.store.layout import extent_path
from vodserver.torrent import compose_torrent

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(120)]

SEED_HOST = "127.33.0.1"


def resident_bytes():
    """Memory of this process, by the kernel."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def twin(store, title, number):
    """A title of the same bytes under another name: another info-hash, and files of its own."""
    info = bencode2.bdecode(title.info)
    info[b"name"] = f"film-{number}.mp4".encode()
    coded = bencode2.bencode(info)
    made = dataclasses.replace(
        title,
        id=f"film-{number}",
        folder=f"{number:016x}",
        info=coded,
        info_hash=hashlib.sha1(coded).hexdigest(),
    )
    for extent in title.extents:
        for disk in extent.disks:
            path = extent_path(store.disk_paths[disk], made.folder, extent.number)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(store.replica_path(title, extent, disk), path)
    return made


async def test_hundreds_of_titles_in_one_process(tmp_path, full, figures):
    """All are offered soon, cost little, and the first and the last can be had."""
    count = 200 if full else 40
    spec = FilmSpec(duration_seconds=6.0, bit_rate=20_000.0, width=64, height=64)
    film = make_film(tmp_path / "film.mp4", spec)
    with open_store(make_empty(tmp_path / "vod")) as store:
        title = add_film(store, film, rng=np.random.default_rng(3))
        titles = [twin(store, title, number) for number in range(count)]
        for each in titles:
            store.include(each)
        before, began = resident_bytes(), time.monotonic()
        settings = SeedSettings(host=SEED_HOST, port=0, upload=None, connections=50, trackers=())
        seed = Seed(store, settings)
        await seed.start()
        listening = time.monotonic() - began
        async with asyncio.timeout(60):
            await seed.wait_offered()
        offered = time.monotonic() - began
        used = resident_bytes() - before
        for each, host in ((titles[0], "127.33.0.2"), (titles[-1], "127.33.0.3")):
            (tmp_path / each.id).mkdir()
            torrent = compose_torrent(each, trackers=(), content_url="http://127.0.0.1:1/film")
            client = StockClient(torrent, tmp_path / each.id, host)
            await client.download(SEED_HOST, seed.port)
            client.close()
            (got,) = (tmp_path / each.id).iterdir()
            assert hashlib.sha256(got.read_bytes()).hexdigest() == title.sha256
        there = await seed.statistics()
        await seed.close()
    figures["seed_titles"] = there["titles_offered"]
    figures["seed_titles_seconds_to_listen"] = round(listening, 3)
    figures["seed_titles_seconds_to_offer"] = round(offered, 2)
    figures["seed_titles_bytes_each"] = round(used / count)
    assert there["titles_offered"] == count + 1
    assert there["titles_in_part"] == 0
    assert used / count < 500_000
