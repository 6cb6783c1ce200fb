"""Replicas are remade, moved and added; whatever stops it, the catalog tells the truth."""

import asyncio

import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import assert_whole, count_on, film_digest
from vodserver.errors import DiskError, ReadError, StoreUsageError
from vodserver.store.events import TitleChanged
from vodserver.store.upkeep.workshop import workshop_of


def others(title, number):
    """Disks that do not hold an extent."""
    return [disk for disk in range(4) if disk not in title.extents[number].disks]


async def test_a_rotten_replica_is_remade_where_it_is(home):
    flip_byte(home.replica(2, 0), 1000)
    disk = home.title.extents[2].disks[0]
    with home.open() as store:
        assert not await store.check_replica(home.title, home.title.extents[2], disk)
        assert await workshop_of(store).remake(home.title.id, 2, disk)

        assert store.bad_replicas() == set()
        assert store.titles() == [home.title]
        assert await store.check_replica(home.title, home.title.extents[2], disk, from_disk=True)
    assert_whole(home)


async def test_a_moved_replica_is_there_and_the_old_one_goes_with_the_sweep(home):
    old = home.title.extents[3].disks[0]
    new = others(home.title, 3)[0]
    events = []
    with home.open() as store:
        store.subscribe(events.append)
        workshop = workshop_of(store)
        used = dict(workshop.used())
        assert await workshop.move(home.title.id, 3, old, new)

        (title,) = store.titles()
        assert title.extents[3].disks == (new, home.title.extents[3].disks[1])
        assert events == [TitleChanged(title)]
        size = title.extents[3].size
        assert workshop.used()[old] == used[old] - size
        assert workshop.used()[new] == used[new] + size
        assert home.replica(3, 0).exists()
        await workshop.sweep()
        assert not home.replica(3, 0).exists()
        assert await film_digest(store) == home.title.sha256
    assert assert_whole(home) == title


async def test_an_extent_gets_one_more_replica(home):
    new = others(home.title, 0)[0]
    with home.open() as store:
        assert await workshop_of(store).add(home.title.id, 0, new)
        assert store.titles()[0].extents[0].disks == (*home.title.extents[0].disks, new)


async def test_what_is_no_longer_so_is_not_done(home):
    held, free = home.title.extents[0].disks[0], others(home.title, 0)[0]
    with home.open() as store:
        workshop = workshop_of(store)
        assert not await workshop.remake("no-such-title", 0, 0)
        assert not await workshop.remake(home.title.id, 0, free)
        assert not await workshop.add(home.title.id, 0, held)
        assert not await workshop.move(home.title.id, 0, held, home.title.extents[0].disks[1])
    assert_whole(home)


async def test_without_a_good_replica_nothing_is_written(home):
    for copy in (0, 1):
        flip_byte(home.replica(1, copy), 7)
    before = home.replica(1, 0).read_bytes()
    with home.open() as store:
        with pytest.raises(ReadError):
            await workshop_of(store).remake(home.title.id, 1, home.title.extents[1].disks[0])
        assert store.catalog.pending() == []
    assert home.replica(1, 0).read_bytes() == before


async def test_a_disk_that_is_not_there_takes_nothing(home):
    new = others(home.title, 0)[0]
    with home.open() as store:
        store.detach_disk(new)
        with pytest.raises(DiskError, match="not there"):
            await workshop_of(store).add(home.title.id, 0, new)
    assert_whole(home)


async def test_a_full_disk_leaves_no_trace(home, mount):
    small = mount("small", "16k")
    (small / "extents").mkdir()
    new = others(home.title, 0)[0]
    with home.open() as store:
        store.disk_paths[new] = small
        with pytest.raises(DiskError, match="full"):
            await workshop_of(store).add(home.title.id, 0, new)
        assert store.catalog.pending() == []
    assert_whole(home)
    assert not [path for path in small.rglob("*") if path.is_file()]


async def test_one_at_a_time_for_an_extent(home):
    """Two who want the same replica elsewhere do not leave it on three disks."""
    old = home.title.extents[4].disks[0]
    with home.open() as store:
        workshop = workshop_of(store)
        done = await asyncio.gather(
            *(workshop.move(home.title.id, 4, old, new) for new in others(home.title, 4))
        )
        assert sorted(done) == [False, True]
        await workshop.sweep()
        assert workshop._locks == {}
    assert_whole(home)


async def test_all_extents_at_once_and_back_again(home):
    """A sweep in the middle never takes what was just moved back."""
    with home.open() as store:
        workshop = workshop_of(store)
        number = 0
        there = [extent for extent in home.title.extents if number in extent.disks]
        targets = {extent.number: others(home.title, extent.number)[0] for extent in there}

        async def there_and_back(extent):
            new = targets[extent.number]
            await workshop.move(home.title.id, extent.number, number, new)
            await workshop.move(home.title.id, extent.number, new, number)

        await asyncio.gather(
            *(there_and_back(extent) for extent in there), *(workshop.sweep() for _ in range(5))
        )
        await workshop.sweep()
        assert count_on(store.titles()[0]) == count_on(home.title)
    assert_whole(home)


async def test_a_title_that_is_removed_meanwhile_leaves_only_what_is_noted(home, monkeypatch):
    """The next opening clears it away."""
    disk = home.title.extents[0].disks[0]
    with home.open() as store:
        workshop = workshop_of(store)
        reading = workshop._read

        async def read_then_remove(title, extent):
            data = await reading(title, extent)
            store.catalog.remove_title(title.id)
            store.exclude(title.id)
            return data

        monkeypatch.setattr(workshop, "_read", read_then_remove)
        with pytest.raises(StoreUsageError, match="no extent"):
            await workshop.remake(home.title.id, 0, disk)
    home.open().close()
    assert not [path for each in home.disks for path in each.rglob("0*")]


@pytest.mark.parametrize("moment", range(8))
async def test_cancelled_at_any_moment_it_is_whole(home, moment):
    old, new = home.title.extents[5].disks[0], others(home.title, 5)[0]
    with home.open() as store:
        task = asyncio.ensure_future(workshop_of(store).move(home.title.id, 5, old, new))
        for _ in range(moment):
            await asyncio.sleep(0.002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        in_memory = store.titles()
        assert in_memory == store.catalog.titles()
    home.open().close()
    assert [assert_whole(home)] == in_memory


async def test_there_is_one_workshop_for_a_store_and_it_goes_with_it(home):
    with home.open() as store:
        assert workshop_of(store) is workshop_of(store)
        with pytest.raises(StoreUsageError, match="no disk 9: its disks are 0, 1, 2, 3"):
            workshop_of(store).row(9)


async def test_who_does_not_watch_the_disks_may_ask_once(home):
    (home.disks[1] / "vod-disk.json").unlink()
    with home.open() as store:
        workshop = workshop_of(store)
        await workshop.look(write=True)

        assert [workshop.conditions[n].health for n in range(4)] == ["ok", "absent", "ok", "ok"]
        assert [workshop.can_take(row) for row in store.disk_rows] == [True, False, True, True]


async def test_what_was_remade_before_it_was_noted_as_bad_is_not_noted(home):
    """A scrub finds it, and whoever repairs it is quicker than the note of it."""
    flip_byte(home.replica(1, 0), 5)
    extent = home.title.extents[1]
    with home.open() as store:
        workshop = workshop_of(store)
        assert not await store.check_replica(home.title, extent, extent.disks[0], from_disk=True)
        await workshop.remake("clock", 1, extent.disks[0])

        late = (home.title.folder, 1, extent.disks[0], "its checksum does not match")
        await workshop.note_bad([late])

        assert store.catalog.bad() == []
        flip_byte(home.replica(1, 0), 5)
        assert not await store.check_replica(home.title, extent, extent.disks[0], from_disk=True)
        await workshop.note_bad([late])
        assert len(store.catalog.bad()) == 1
