"""Disks are taken in, emptied and replaced, and all of it can be stopped and gone on with."""

import asyncio
import json
import shutil

import numpy as np
import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import assert_whole, count_on, film_digest
from vodserver.errors import AllocationError, DiskError, StoreError, StoreUsageError
from vodserver.store.upkeep.disks import add_disk, drain_disk, replace_disk, undrain_disk
from vodserver.store.upkeep.health import Condition
from vodserver.store.upkeep.workshop import workshop_of


def nothing(_):
    pass


def rng():
    return np.random.default_rng(3)


async def drain(store, number, progress=nothing):
    return await drain_disk(workshop_of(store), number, rng(), progress)


# add


async def test_a_new_disk_is_used_and_known_after_a_restart(home, tmp_path):
    with home.open() as store:
        row = await add_disk(workshop_of(store), tmp_path / "new" / "e")
        assert row.number == 4
        assert row.capacity_bytes > 0
        assert store.disk_paths[4] == tmp_path / "new" / "e"
        held = home.title.extents[0].disks[0]
        await workshop_of(store).move(home.title.id, 0, held, 4)
        await workshop_of(store).sweep()
    with home.open() as store:
        assert store.disk_rows[4] == row
        assert 4 in store.disk_paths
    assert_whole(home)


@pytest.mark.parametrize("make", ["full", "disk", "file"])
async def test_what_is_no_empty_directory_is_refused(home, tmp_path, make):
    path = tmp_path / "new"
    if make == "file":
        path.write_text("no directory")
    else:
        path.mkdir()
        name = "vod-disk.json" if make == "disk" else "something"
        (path / name).write_text(json.dumps({"store": "x", "disk": "y"}))
    before = sorted(tmp_path.rglob("*"))
    with home.open() as store:
        with pytest.raises((StoreUsageError, DiskError)):
            await add_disk(workshop_of(store), path)
        with pytest.raises(StoreUsageError, match="disk of this store already"):
            await add_disk(workshop_of(store), home.disks[1])
        assert len(store.disk_rows) == len(store.catalog.disks()) == 4
    assert [path for path in before if not path.exists()] == []


async def test_a_directory_that_a_killed_add_prepared_is_taken(home, tmp_path):
    with home.open() as store:
        (tmp_path / "new" / "extents").mkdir(parents=True)
        known = {"store": store.catalog.store_id, "disk": "begun"}
        (tmp_path / "new" / "vod-disk.json").write_text(json.dumps(known))
        row = await add_disk(workshop_of(store), tmp_path / "new")
    assert row.id == "begun"


# drain


async def test_a_drained_disk_is_empty_retired_and_a_directory_like_any_other(home):
    told = []
    with home.open() as store:
        tally = await drain(store, 1, told.append)
        assert await film_digest(store) == home.title.sha256
        assert store.disk_rows[1].state == "retired"
        assert 1 not in store.disk_paths
        with pytest.raises(StoreUsageError, match="retired already"):
            await drain(store, 1)
        with pytest.raises(StoreUsageError, match="retired"):
            await replace_disk(workshop_of(store), 1, home.path / "x", nothing)
    held = count_on(home.title)[1]
    assert (tally.done, tally.failed) == (held, 0)
    assert [each["done"] for each in told] == list(range(1, held + 1))
    assert told[-1]["bytes_done"] == told[-1]["bytes_total"] == tally.done_bytes
    assert list(home.disks[1].iterdir()) == []
    assert count_on(assert_whole(home))[1] == 0
    with home.open() as store:
        assert 1 not in store.disk_paths
        row = await add_disk(workshop_of(store), home.disks[1])
        assert row.number == 4


async def test_a_drain_that_was_stopped_goes_on(home):
    with home.open() as store:
        task = asyncio.ensure_future(drain(store, 0, lambda _: task.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.disk_rows[0].state == "draining"
    with home.open() as store:
        assert store.disk_rows[0].state == "draining"
        left = count_on(store.titles()[0])[0]
        assert 0 < left < count_on(home.title)[0]
        tally = await drain(store, 0)
        assert tally.done == left
    assert count_on(assert_whole(home))[0] == 0


async def test_a_drain_can_be_called_off(home):
    with home.open() as store:
        task = asyncio.ensure_future(drain(store, 0, lambda _: task.cancel()))
        await asyncio.gather(task, return_exceptions=True)
        await undrain_disk(workshop_of(store), 0)
        assert store.disk_rows[0].state == "active"
        assert store.catalog.disks()[0].state == "active"
        with pytest.raises(StoreUsageError, match="not being drained"):
            await undrain_disk(workshop_of(store), 0)


async def test_a_drain_that_leaves_too_few_disks_is_refused(home):
    with home.open() as store:
        await drain(store, 0)
        await drain(store, 1)
        with pytest.raises(AllocationError, match="needs 2 disks, and without disk 2 there are 1"):
            await drain(store, 2)
        assert store.disk_rows[2].state == "active"
    assert_whole(home)


@pytest.mark.parametrize(("devices", "fits"), [((1, 2, 3), True), ((1, 1, 1), False)])
async def test_a_drain_without_room_is_refused(home, devices, fits):
    """Directories on one file system share its room."""
    with home.open() as store:
        workshop = workshop_of(store)
        room = workshop.used()[0] // 2
        for number, device in zip((1, 2, 3), devices, strict=True):
            workshop.conditions[number] = Condition("ok", "", 0.0, room, 10 * room, device)
        if fits:
            await drain(store, 0)
            return
        with pytest.raises(AllocationError, match="have room for"):
            await drain(store, 0)
        assert store.disk_rows[0].state == "active"
    assert_whole(home)


async def test_a_dead_disk_is_drained_from_the_others(home):
    shutil.rmtree(home.disks[3])
    with home.open() as store:
        tally = await drain(store, 3)
        assert tally.done == count_on(home.title)[3]
    title = assert_whole(home)
    assert count_on(title)[3] == 0


async def test_what_cannot_be_moved_is_told_and_keeps_the_disk_draining(home):
    number = home.title.extents[2].disks[0]
    for copy in (0, 1):
        flip_byte(home.replica(2, copy), 9)
    with home.open() as store:
        with pytest.raises(StoreError, match="1 replicas could not be moved off disk"):
            await drain(store, number)
        assert store.disk_rows[number].state == "draining"
        assert count_on(store.titles()[0])[number] == 1


# replace


async def test_a_dead_disk_is_replaced(home, tmp_path):
    shutil.rmtree(home.disks[2])
    told = []
    with home.open() as store:
        tally = await replace_disk(workshop_of(store), 2, tmp_path / "new", told.append)
        assert store.disk_paths[2] == tmp_path / "new"
        assert store.disk_rows[2].path == tmp_path / "new"
        assert store.catalog.get_note("replacing") is None
        assert await film_digest(store) == home.title.sha256
    held = count_on(home.title)[2]
    assert tally.done == held
    assert told[-1]["done"] == told[-1]["total"] == held
    assert count_on(assert_whole(home)) == count_on(home.title)


async def test_a_disk_that_is_there_is_replaced_without_being_read(home, tmp_path):
    for path in (home.disks[0] / "extents").glob("*/*"):
        flip_byte(path, 5)
    with home.open() as store:
        await replace_disk(workshop_of(store), 0, tmp_path / "new", nothing)
    assert count_on(assert_whole(home)) == count_on(home.title)


@pytest.mark.parametrize("after", [1, 2])
async def test_a_replacement_that_was_stopped_goes_on(home, tmp_path, after):
    shutil.rmtree(home.disks[2])
    told = []

    def stop(progress):
        told.append(progress)
        if len(told) == after:
            task.cancel()

    with home.open() as store:
        task = asyncio.ensure_future(replace_disk(workshop_of(store), 2, tmp_path / "new", stop))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await film_digest(store) == home.title.sha256
    with home.open() as store:
        left = sum(len(extent.disks) < 2 for extent in store.titles()[0].extents)
        tally = await replace_disk(workshop_of(store), 2, tmp_path / "new", nothing)
        assert tally.done == left
    assert count_on(assert_whole(home)) == count_on(home.title)


async def test_a_replacement_can_itself_be_replaced(home, tmp_path):
    """The new disk dies before it is full: what it should have held goes to the next one."""
    shutil.rmtree(home.disks[2])
    with home.open() as store:
        task = asyncio.ensure_future(
            replace_disk(workshop_of(store), 2, tmp_path / "new", lambda _: task.cancel())
        )
        await asyncio.gather(task, return_exceptions=True)
        shutil.rmtree(tmp_path / "new")
        await replace_disk(workshop_of(store), 2, tmp_path / "newer", nothing)
    assert count_on(assert_whole(home)) == count_on(home.title)


async def test_what_only_the_old_disk_has_is_not_given_up(home, tmp_path):
    number, other = home.title.extents[4].disks
    flip_byte(home.replica(4, 1), 9)
    with home.open() as store:
        assert not await store.check_replica(home.title, home.title.extents[4], other)
        with pytest.raises(StoreUsageError, match=f"1 extents are good on disk {number} alone"):
            await replace_disk(workshop_of(store), number, tmp_path / "new", nothing)
        assert store.titles() == [home.title]
    assert not (tmp_path / "new").exists()


async def test_a_new_disk_that_is_too_small_is_refused(home, mount):
    small = mount("small", "64k")
    with home.open() as store:
        with pytest.raises(DiskError, match="has room for"):
            await replace_disk(workshop_of(store), 0, small, nothing)
        assert store.titles() == [home.title]
        assert store.disk_paths[0] == home.disks[0]


async def test_there_is_no_such_disk(home, tmp_path):
    with home.open() as store:
        with pytest.raises(StoreUsageError, match="no disk 7"):
            await replace_disk(workshop_of(store), 7, tmp_path / "new", nothing)
        with pytest.raises(StoreUsageError, match="no disk 7"):
            await drain(store, 7)
    assert not (tmp_path / "new").exists()
