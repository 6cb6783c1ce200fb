"""Titles, replicas and disks that come and go while the seed runs, met by stock clients."""

import asyncio
import contextlib
import dataclasses
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vodserver.conftest import flip_byte, unlock
from tests.vodserver.seed.conftest import CLIENT_HOST, SEED_HOST, torrent_of
from vodserver.store.layout import extent_path

pytestmark = pytest.mark.slow


async def until(condition, seconds=10.0):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the seed tells nobody
            await asyncio.sleep(0.01)


def offer_of(seed, title):
    return seed._offers.get(title.id)


def disks_read(seed, title):
    return [None if held is None else held.disk for held in offer_of(seed, title).chosen]


def spares_are_verified(seed, title):
    offer = offer_of(seed, title)
    return all(len(offer.verified(each.number)) == len(each.disks) for each in title.extents)


async def gets_the_film(home, seed, folder, stock_client, host=CLIENT_HOST):
    client = stock_client(torrent_of(home.title), folder, host)
    await client.download(SEED_HOST, seed.port)
    data = (folder / home.film.name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == home.title.sha256
    return client


async def test_a_title_that_is_removed_is_offered_no_longer_and_again_when_it_is_added(
    home, tmp_path, seeding, stock_client
):
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        store.exclude(home.title.id)
        gone = await seed.statistics()
        held = seed._holder.held
        store.include(home.title)
        await seed.wait_offered()

        await gets_the_film(home, seed, tmp_path, stock_client)

        assert (gone["titles_offered"], gone["extents"], held) == (0, 0, 0)
        assert (await seed.statistics())["titles_offered"] == 1
        await seed.close()


async def test_a_title_that_is_removed_while_it_is_verified_is_not_offered(home, seeding):
    with home.open() as store:
        seed = await seeding(store)
        store.exclude(home.title.id)
        await seed.wait_offered()
        await asyncio.sleep(0.1)

        assert (await seed.statistics())["titles_offered"] == 0
        assert seed._holder.held == 0
        await seed.close()


async def test_a_replica_that_moved_is_read_where_it_was_until_it_is_verified_where_it_is(
    home, tmp_path, seeding, stock_client
):
    """Each extent moves to disks that had none of it; the old files are unlinked at once."""
    title = home.title
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        moved = []
        for extent in title.extents:
            to = tuple(number for number in range(4) if number not in extent.disks)
            for number in to:
                path = extent_path(home.disks[number], title.folder, extent.number)
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(store.replica_path(title, extent, extent.disks[0]), path)
            moved.append(dataclasses.replace(extent, disks=to))
        store.include(dataclasses.replace(title, extents=tuple(moved)))
        for extent in title.extents:
            for number in extent.disks:
                store.replica_path(title, extent, number).unlink()
        before = disks_read(seed, title)
        client = await gets_the_film(home, seed, tmp_path, stock_client)
        await until(lambda: not any(map(offer_of(seed, title).is_misplaced, range(len(moved)))))

        assert not [line for line in client.alerts if "DONT_HAVE" in line]
        assert all(disk in old.disks for disk, old in zip(before, title.extents, strict=True))
        for disk, extent in zip(disks_read(seed, title), moved, strict=True):
            assert disk in extent.disks
        await seed.close()


async def test_a_disk_that_is_detached_is_let_go_and_used_again_when_it_is_attached(
    home, tmp_path, seeding, stock_client
):
    """No peer is refused anything meanwhile."""
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        await until(lambda: spares_are_verified(seed, home.title))
        victim = disks_read(seed, home.title)[0]
        row = next(row for row in store.disk_rows if row.number == victim)
        path = store.disk_paths[victim]
        store.detach_disk(victim)
        without = disks_read(seed, home.title)
        client = await gets_the_film(home, seed, tmp_path, stock_client)
        store.attach_disk(row, path)
        await until(lambda: spares_are_verified(seed, home.title))

        assert victim not in without
        assert None not in without
        assert not [line for line in client.alerts if "DONT_HAVE" in line]
        await seed.close()


async def test_the_seed_keeps_no_file_of_a_detached_disk_open(
    home, tmp_path, seeding, stock_client
):
    """So that it can be unmounted. What is open when the seed is closed is the store's."""
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        await gets_the_film(home, seed, tmp_path, stock_client)
        victim = disks_read(seed, home.title)[0]
        path = store.disk_paths[victim]
        before = open_files(path)
        store.detach_disk(victim)
        await until(lambda: not seed._swarm._flushing)
        after = open_files(path)
        await seed.close()

        assert after == open_files(path)
        assert len(after) < len(before)


def open_files(folder=Path("/")):
    """What this process has open inside a folder."""
    files = []
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            files.append(str(file.readlink()))
    return sorted(file for file in files if Path(file).is_relative_to(folder))


async def test_rot_with_a_time_of_change_is_seen_before_any_peer_is_sent_it(
    home, tmp_path, seeding, stock_client
):
    """A program that writes over extents changes their times: the next look finds it."""
    with home.open() as store:
        seed = await seeding(store, watch_seconds=0.05)
        await seed.wait_offered()
        await until(lambda: spares_are_verified(seed, home.title))
        before = disks_read(seed, home.title)
        for extent, disk in zip(home.title.extents, before, strict=True):
            flip_byte(store.replica_path(home.title, extent, disk), 9)
        await until(
            lambda: all(
                old != new for old, new in zip(before, disks_read(seed, home.title), strict=True)
            )
        )
        client = await gets_the_film(home, seed, tmp_path, stock_client)

        assert not [line for line in client.alerts if "hash_failed" in line]
        assert offer_of(seed, home.title).in_part is False
        await seed.close()


@pytest.mark.parametrize("patient", [False, True])
async def test_an_extent_whose_last_replica_rots_is_not_served_and_is_when_it_is_remade(
    home, tmp_path, seeding, stock_client, patient
):
    """No peer gets a wrong byte; the piece is there again without a new start.

    A stock peer hangs up on a seed that has nothing for it, and comes again by itself. One that
    stays, and was told that the piece is not there, is called anew.
    """
    title, extent = home.title, home.title.extents[2]
    good = home.replica(2, 0).read_bytes()
    with home.open() as store:
        seed = await seeding(store, watch_seconds=0.05, pass_seconds=0.1, upload=800_000)
        await seed.wait_offered()
        for copy in (0, 1):
            flip_byte(home.replica(2, copy), 5)
            await store.check_replica(title, extent, extent.disks[copy], from_disk=True)
        await until(lambda: disks_read(seed, title)[2] is None)
        client = stock_client(torrent_of(title), tmp_path, CLIENT_HOST)
        client._session.apply_settings({"close_redundant_connections": not patient})
        client.handle.connect_peer((SEED_HOST, seed.port))
        await client.settle(lambda c: any("DONT_HAVE" in line for line in c.alerts))
        for copy in (0, 1):
            unlock(home.replica(2, copy))
            home.replica(2, copy).write_bytes(good)
        store.mark_good(title, extent, extent.disks[0])

        await client.settle(lambda c: c.handle.status().is_seeding)

        assert not [line for line in client.alerts if "hash_failed" in line]
        assert (await seed.statistics())["reconnects"] > 0 or not patient
        await seed.close()
    assert hashlib.sha256((tmp_path / home.film.name).read_bytes()).hexdigest() == title.sha256


async def test_a_long_verification_offers_what_is_verified_and_the_rest_later(
    home, tmp_path, seeding, stock_client, monkeypatch
):
    """The store is made to wait before extent 3; the peer has the others, then all, and stays."""
    with home.open() as store:
        go_on = asyncio.Event()
        check = store.check_replica

        async def slow(title, extent, disk, **options):
            if extent.number == 3:
                await go_on.wait()
            return await check(title, extent, disk, **options)

        monkeypatch.setattr(store, "check_replica", slow)
        seed = await seeding(store, offer_seconds=0.0, verifications=2)
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)
        await until(lambda: offer_of(seed, home.title).offers > 0)
        await until(lambda: len(offer_of(seed, home.title).unseen) == 1)
        first = 3 * home.title.extent_bytes // home.title.piece_bytes
        client.handle.connect_peer((SEED_HOST, seed.port))
        each = home.title.extent_bytes // home.title.piece_bytes
        wanted = client.handle.torrent_file().num_pieces() - each
        await client.settle(lambda c: sum(c.pieces()) == wanted)
        lacking = [n for n, there in enumerate(client.pieces()) if not there]
        progress = await seed.statistics()
        go_on.set()

        await client.settle(lambda c: c.handle.status().is_seeding)

        assert lacking == list(range(first, first + each))
        assert progress["extents_verified"] == progress["extents"] - 1
        await seed.close()
    assert hashlib.sha256((tmp_path / home.film.name).read_bytes()).hexdigest() == (
        home.title.sha256
    )


async def test_closing_leaves_no_link_and_no_open_file(home, seeding):
    before = len(open_files())
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        assert seed._holder.held == len(home.title.extents)
        await seed.close()

        assert not (home.path / "seed").exists()
        assert seed._holder.held == 0
    assert len(open_files()) <= before


async def test_links_that_a_killed_process_left_are_no_obstacle(
    home, tmp_path, seeding, stock_client
):
    stale = home.path / "seed" / home.title.folder
    stale.mkdir(parents=True)
    for extent in home.title.extents:
        (stale / f"{extent.number:06d}").symlink_to("/dev/null")
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        await gets_the_film(home, seed, tmp_path, stock_client)
        await seed.close()


MAPPED = """
import os, sys
import libtorrent as lt
from pathlib import Path

folder = Path(sys.argv[1])
(folder / "film").write_bytes(os.urandom(4 << 20))
files = lt.file_storage()
lt.add_files(files, str(folder / "film"))
made = lt.create_torrent(files, 65536, lt.create_torrent.v1_only)
lt.set_piece_hashes(made, str(folder))
session = lt.session({"listen_interfaces": "127.31.0.9:0", "enable_dht": False,
                      "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
                      "mmap_file_size_cutoff": int(sys.argv[2])})
params = lt.add_torrent_params()
params.ti = lt.torrent_info(lt.bdecode(lt.bencode(made.generate())))
params.save_path = str(folder)
params.have_pieces = params.verified_pieces = [True] * 64
params.flags = lt.torrent_flags.no_verify_files | lt.torrent_flags.upload_mode
handle = session.add_torrent(params)

def read(piece):
    handle.read_piece(piece)
    while True:
        session.wait_for_alert(5000)
        for alert in session.pop_alerts():
            if isinstance(alert, lt.read_piece_alert):
                return alert.error.value()

assert read(0) == 0
mapped = str(folder / "film") in Path("/proc/self/maps").read_text()
os.truncate(folder / "film", 1000)
print(mapped, read(40) != 0, handle.is_valid())
"""


@pytest.mark.parametrize(("cutoff", "is_mapped"), [(0, "True"), (2**31 - 1, "False")])
def test_a_file_that_shrinks_under_libtorrent_is_an_error_and_no_signal(
    tmp_path, cutoff, is_mapped
):
    """With memory maps (SIGBUS, which libtorrent catches) and without, as the seed has it."""
    done = subprocess.run(
        [sys.executable, "-c", MAPPED, str(tmp_path), str(cutoff)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout.split()) == (0, [is_mapped, "True", "True"])


async def test_extents_leave_a_disk_that_is_to_be_emptied_a_few_at_a_time(
    home, tmp_path, seeding, stock_client
):
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        await until(lambda: spares_are_verified(seed, home.title))
        victim = disks_read(seed, home.title)[0]
        store.disk_rows = [
            dataclasses.replace(row, state="draining") if row.number == victim else row
            for row in store.disk_rows
        ]
        before = disks_read(seed, home.title).count(victim)
        seed._watch._settings = dataclasses.replace(seed._settings, pass_moves=1)
        seed._watch._pass(1.0)
        after_one = disks_read(seed, home.title).count(victim)
        for _ in range(before):
            seed._watch._pass(1.0)

        assert (before - after_one, disks_read(seed, home.title).count(victim)) == (1, 0)
        await gets_the_film(home, seed, tmp_path, stock_client)
        await seed.close()
