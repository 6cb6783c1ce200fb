"""Replicas fail under the seed while stock peers download from it alone."""

import asyncio
import hashlib
import os
import time

import bencode2
import numpy as np
import pytest

from experiments.film import FilmSpec, make_film
from tests.vodserver.conftest import DISKS, StockClient, make_empty, unlock
from vodserver.seed import Seed, SeedSettings
from vodserver.store import add_film, open_store
from vodserver.torrent import compose_torrent

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(180)]

SEED_HOST = "127.32.0.1"
PEERS = 4
LOOK_SECONDS = 0.05


@pytest.fixture(scope="module")
def filmed(tmp_path_factory, full):
    """A store with one film: 5 MB in 4 extents, and with --full 60 MB in 24."""
    folder = tmp_path_factory.mktemp("faults")
    seconds, rate = (120.0, 500_000.0) if full else (20.0, 250_000.0)
    film = make_film(folder / "film.mp4", FilmSpec(duration_seconds=seconds, bit_rate=rate))
    with open_store(make_empty(folder / "vod")) as store:
        title = add_film(store, film, rng=np.random.default_rng(7))
    return folder / "vod" / "store", film, title


class Watched:
    """A stock client, and how long it stood still."""

    def __init__(self, client, folder, name):
        self.client = client
        self.path = folder / name
        self.standing = 0.0
        self.dropped = 0
        self._bytes = 0
        self._at = time.monotonic()

    def look(self):
        status = self.client.handle.status()
        now = time.monotonic()
        if status.is_seeding:
            return True
        self.dropped = self.count("peer_disconnected_alert", SEED_HOST)
        if status.total_wanted_done != self._bytes:
            self._bytes, self._at = status.total_wanted_done, now
        self.standing = max(self.standing, now - self._at)
        return False

    @property
    def part(self):
        return self.client.handle.status().progress

    def count(self, *words):
        return sum(all(word in line for word in words) for line in self.client.alerts)


async def nothing(store, title, held):
    pass


async def unlink(store, title, held):
    store.replica_path(title, title.extents[held[0]], held[1]).unlink()


async def truncate(store, title, held):
    path = store.replica_path(title, title.extents[held[0]], held[1])
    unlock(path)
    os.truncate(path, 1000)


async def rot(store, title, held):
    """A replica gives place to a rotten one, and a check finds it.

    Not in place: what libtorrent reads before anybody has found the rot goes out, and peers ban
    whom it comes from. What is shown here is what happens once it was found.
    """
    extent = title.extents[held[0]]
    path = store.replica_path(title, extent, held[1])
    data = bytearray(path.read_bytes())
    for offset in range(0, extent.size, 60_000):
        data[offset] ^= 0x40
    rotten = path.with_name("rotten")
    rotten.write_bytes(data)
    rotten.replace(path)
    assert not await store.check_replica(title, extent, held[1], from_disk=True)


async def take_away(store, title, held):
    """The whole disk's directory vanishes; its name is free again afterwards."""
    disk = store.disk_paths[held[1]]
    if disk.is_dir():
        disk.rename(disk.with_name(f"{disk.name}-away"))


def bring_back(store):
    for disk in store.disk_paths.values():
        away = disk.with_name(f"{disk.name}-away")
        if away.is_dir():
            away.rename(disk)


def chosen(seed, title):
    """Extent number and disk of what libtorrent reads now."""
    held = seed._offers.get(title.id).chosen
    return [(number, each.disk) for number, each in enumerate(held) if each is not None]


@pytest.mark.parametrize(
    "harm", [nothing, unlink, truncate, rot, take_away], ids=lambda harm: harm.__name__
)
async def test_peers_of_the_seed_do_not_notice_that_replicas_fail(
    filmed, tmp_path, full, figures, harm
):
    """Replicas on offer are damaged while four peers download: all that are read, or a disk's.

    The film has good twins of them all. The hole without any harm is given for comparison: it is
    the time to the first block.
    """
    path, film, title = filmed
    backup = keep(path, title)
    settings = SeedSettings(
        host=SEED_HOST, port=0, upload=10e6 if full else 7e6, connections=50, trackers=()
    )
    with open_store(path) as store:
        seed = Seed(store, settings)
        await seed.start()
        try:
            await seed.wait_offered()
            await spares_verified(seed, title)
            clients, sent = await download(seed, store, title, tmp_path, harm)
        finally:
            await seed.close()
            bring_back(store)
            give_back(backup)
    source = film.read_bytes()
    found = {
        "peers_dropped": sum(each.dropped for each in clients),
        "wrong_bytes": sum(differing(each.path.read_bytes(), source) for each in clients),
        "bans": sum(each.count("peer_ban_alert") for each in clients),
        "hash_failures": sum(each.count("hash_failed_alert") for each in clients),
        "seconds_of_hole": round(max(each.standing for each in clients), 2),
        "read_errors": sent["read_errors"],
        "swaps": sent["swaps"],
        "reconnects": sent["reconnects"],
    }
    figures.update({f"seed_{harm.__name__}_{name}": value for name, value in found.items()})
    assert hashlib.sha256(clients[0].path.read_bytes()).hexdigest() == title.sha256
    assert (found["wrong_bytes"], found["bans"], found["hash_failures"]) == (0, 0, 0)
    assert (found["swaps"] > 0) == (harm is not nothing)
    assert found["seconds_of_hole"] < 10.0
    # A file that shrinks while it is read cannot be foreseen: some reads of it fail.
    assert (found["read_errors"] > 0) <= (harm is truncate)
    if harm is not truncate:
        assert found["peers_dropped"] == 0


async def download(seed, store, title, folder, harm):
    """Four stock peers get the film; at a quarter of it harm is done."""
    torrent = compose_torrent(title, trackers=(), content_url="http://127.0.0.1:1/film")
    clients = []
    try:
        for number in range(PEERS):
            (folder / str(number)).mkdir()
            client = StockClient(torrent, folder / str(number), f"127.32.0.{number + 2}")
            clients.append(Watched(client, folder / str(number), film_name(title)))
            client.handle.connect_peer((SEED_HOST, seed.port))
        harmed, ready = False, 0
        async with asyncio.timeout(120):
            while ready < PEERS:
                if not harmed and min(each.part for each in clients) > 0.25:
                    harmed = True
                    victims = chosen(seed, title)
                    for held in victims[:1] if harm is take_away else victims:
                        await harm(store, title, held)
                for each in clients:
                    await each.client.take_alerts()
                ready = sum([each.look() for each in clients])
                await asyncio.sleep(LOOK_SECONDS)
        assert harmed
        return clients, await seed.statistics()
    finally:
        for each in clients:
            each.client.close()


async def spares_verified(seed, title):
    """Wait until each extent has a verified twin."""
    offer = seed._offers.get(title.id)
    async with asyncio.timeout(30):
        while any(len(offer.verified(each.number)) < 2 for each in title.extents):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def film_name(title):
    return bencode2.bdecode(title.info)[b"name"].decode()


def keep(path, title):
    """The bytes of all replicas, to be given back after the test."""
    disks = [path.parent / f"disk{n}" for n in range(DISKS)]
    return {file: file.read_bytes() for disk in disks for file in disk.rglob(f"{title.folder}/*")}


def give_back(backup):
    for file, data in backup.items():
        if not file.exists() or file.read_bytes() != data:
            file.unlink(missing_ok=True)
            file.write_bytes(data)


def differing(data, source):
    """How many bytes are not those of the source."""
    if len(data) != len(source):
        return abs(len(data) - len(source))
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) != np.frombuffer(source, np.uint8)))
