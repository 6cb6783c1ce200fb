"""The keeper watches real directories and real file systems, and acts."""

import asyncio
import contextlib
import shutil

import numpy as np
import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import assert_whole, count_on, film_digest
from vodserver.store.upkeep import keeper as keeper_module
from vodserver.store.upkeep.disks import REPLACING_NOTE, replace_disk
from vodserver.store.upkeep.keeper import Keeper
from vodserver.store.upkeep.scrub import last_scrub
from vodserver.store.upkeep.settings import UpkeepSettings
from vodserver.store.upkeep.workshop import workshop_of

pytestmark = pytest.mark.slow

QUICK = {
    "probe_interval_seconds": 0.02,
    "write_probe_interval_seconds": 0.05,
    "absent_grace_seconds": 60.0,
    "full_below_bytes": 0,
    "scrub": False,
}


class Kept:
    """A store that a keeper keeps."""

    def __init__(self, store, **changed):
        self.store = store
        settings = UpkeepSettings(**{**QUICK, **changed})
        self.keeper = Keeper(store, settings, rng=np.random.default_rng(4))

    async def __aenter__(self):
        await self.keeper.start()
        return self

    async def __aexit__(self, *_):
        await self.keeper.close()

    def health(self, number):
        condition = workshop_of(self.store).conditions.get(number)
        return None if condition is None else condition.health

    async def wait(self, condition, seconds=10.0):
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - a condition of the test's own
                await asyncio.sleep(0.01)

    async def wait_health(self, number, health):
        await self.wait(lambda: self.health(number) == health)


def no_bad(store):
    return not store.catalog.bad() and not store.bad_replicas()


async def test_what_a_read_finds_bad_is_noted_and_remade(home):
    flip_byte(home.replica(0, 0), 5)
    home.replica(3, 1).unlink()
    with home.open() as store:
        async with Kept(store):
            title = home.title
            assert not await store.check_replica(title, title.extents[0], title.extents[0].disks[0])
            assert not await store.check_replica(title, title.extents[3], title.extents[3].disks[1])
            async with asyncio.timeout(10):
                while workshop_of(store).remade < 2:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
        assert no_bad(store)
    assert_whole(home)


async def test_what_was_noted_before_the_start_is_remade(home):
    flip_byte(home.replica(2, 1), 5)
    disk = home.title.extents[2].disks[1]
    with home.open() as store:
        store.catalog.note_bad(home.title.folder, 2, disk, "rotten", 1.0)
        store.catalog.note_bad("a-title-that-is-gone", 2, disk, "rotten", 1.0)
        async with Kept(store) as kept:
            await kept.wait(lambda: workshop_of(store).remade == 1)
        store.catalog.forget_bad("a-title-that-is-gone", 2, disk)
    assert_whole(home)


async def test_a_disk_that_vanishes_is_let_go_and_taken_back(home):
    disk = home.disks[1]
    with home.open() as store:
        async with Kept(store) as kept:
            await kept.wait_health(1, "ok")
            disk.rename(disk.with_name("away"))
            await kept.wait_health(1, "absent")
            assert 1 not in store.disk_paths
            assert await film_digest(store) == home.title.sha256
            disk.with_name("away").rename(disk)
            await kept.wait_health(1, "ok")
            assert store.disk_paths[1] == disk
    assert assert_whole(home) == home.title


async def test_what_rotted_on_a_disk_that_was_away_is_found_when_it_is_back(home):
    number = home.title.extents[4].disks[0]
    disk = home.disks[number]
    with home.open() as store:
        async with Kept(store) as kept:
            disk.rename(disk.with_name("away"))
            await kept.wait_health(number, "absent")
            disk.with_name("away").rename(disk)
            flip_byte(home.replica(4, 0), 77)
            await kept.wait(lambda: workshop_of(store).remade == 1)
    assert assert_whole(home) == home.title


async def test_a_disk_that_is_gone_too_long_is_given_up(home):
    shutil.rmtree(home.disks[2])
    with home.open() as store:
        async with Kept(store, absent_grace_seconds=0.1) as kept:
            await kept.wait(lambda: count_on(store.titles()[0])[2] == 0)
        for extent in store.titles()[0].extents:
            assert len(set(extent.disks)) == 2
        assert await film_digest(store) == home.title.sha256


async def test_disks_whose_mounts_were_swapped_are_where_they_were_found(home):
    first, second = home.disks[:2]
    first.rename(first.with_name("other"))
    second.rename(first)
    first.with_name("other").rename(second)
    with home.open() as store:
        async with Kept(store) as kept:
            await kept.wait_health(0, "ok")
            await kept.wait_health(1, "ok")
        assert store.disk_paths == {**dict(enumerate(home.disks)), 0: second, 1: first}


async def test_another_disk_in_its_place_is_not_taken_for_it(home):
    first, second = home.disks[:2]
    with home.open() as store:
        async with Kept(store) as kept:
            await kept.wait_health(0, "ok")
            first.rename(first.with_name("away"))
            shutil.copytree(second, first)
            await kept.wait_health(0, "absent")
            assert "another disk" in workshop_of(store).conditions[0].reason
            assert kept.health(1) == "ok"


def fill(path):
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(8192))


async def test_a_disk_that_becomes_read_only_full_and_unmounted(home, mount):
    """On a real file system of its own."""
    small = mount("small", "3m")
    number = home.title.extents[0].disks[0]
    shutil.copytree(home.disks[number], small, dirs_exist_ok=True)
    with home.open() as store:
        store.catalog.set_disk(number, path=small)
    with home.open() as store:
        async with Kept(store) as kept:
            await kept.wait_health(number, "ok")
            mount.read_only(small)
            await kept.wait_health(number, "read-only")
            mount.writable(small)
            await kept.wait_health(number, "ok")
            fill(small / "filler")
            await kept.wait_health(number, "full")
            (small / "filler").unlink()
            await kept.wait_health(number, "ok")
            mount.away(small)
            await kept.wait_health(number, "absent")
            assert await film_digest(store) == home.title.sha256


async def test_a_replacement_that_was_killed_is_gone_on_with(home, tmp_path):
    shutil.rmtree(home.disks[2])
    with home.open() as store:
        task = asyncio.ensure_future(
            replace_disk(workshop_of(store), 2, tmp_path / "new", lambda _: task.cancel())
        )
        await asyncio.gather(task, return_exceptions=True)
        assert store.catalog.get_note(REPLACING_NOTE) == "2"
    with home.open() as store:
        async with Kept(store) as kept:
            await kept.wait(lambda: count_on(store.titles()[0]) == count_on(home.title))
    assert_whole(home)


async def test_it_scrubs_when_that_is_due(home, monkeypatch):
    monkeypatch.setattr(keeper_module, "_PAUSE_SECONDS", 0.01)
    flip_byte(home.replica(5, 1), 3)
    with home.open() as store:
        async with Kept(store, scrub=True, scrub_rate=1e9) as kept:
            await kept.wait(lambda: workshop_of(store).remade == 1)
            await kept.wait(lambda: last_scrub(store.catalog.get_note) is not None)
            await asyncio.sleep(0.05)
        found = last_scrub(store.catalog.get_note)
        assert (found.bad, found.checked) == (1, 2 * len(home.title.extents))
    assert_whole(home)


async def test_closing_it_ends_all_that_it_began(home):
    with home.open() as store:
        before = asyncio.all_tasks()
        kept = Kept(store)
        await kept.keeper.start()
        await kept.wait_health(0, "ok")
        await kept.keeper.close()
        assert asyncio.all_tasks() == before
        assert store._listeners == [workshop_of(store)._forget_used]
