"""What holds with two copies of every extent holds with three; and two disks may be lost."""

import itertools
import shutil

import numpy as np
import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import assert_whole, count_on, film_digest
from tests.vodserver.store.upkeep.test_keeper import Kept
from vodserver.errors import AllocationError
from vodserver.store.fsck import survey
from vodserver.store.upkeep.disks import add_disk, drain_disk, replace_disk
from vodserver.store.upkeep.rebalance import rebalance
from vodserver.store.upkeep.scrub import Scrub
from vodserver.store.upkeep.status import store_status
from vodserver.store.upkeep.workshop import workshop_of

pytestmark = pytest.mark.slow


def nothing(_):
    pass


def rng():
    return np.random.default_rng(3)


def test_a_film_is_written_to_three_disks_an_extent(thrice):
    with thrice.open() as store:
        assert store.catalog.allocation == "rda-3"
    assert assert_whole(thrice, copies=3) == thrice.title


@pytest.mark.parametrize("lost", list(itertools.combinations(range(4), 2)))
async def test_without_any_two_of_four_disks_no_byte_is_wrong(thrice, lost):
    for number in lost:
        shutil.rmtree(thrice.disks[number])
    with thrice.open() as store:
        assert await film_digest(store) == thrice.title.sha256


async def test_with_two_rotten_copies_of_three_no_byte_is_wrong(thrice):
    for copy in (0, 1):
        for extent in thrice.title.extents:
            flip_byte(thrice.replica(extent.number, copy), 7)
    with thrice.open() as store:
        assert await film_digest(store) == thrice.title.sha256


async def test_two_of_four_disks_are_lost_and_all_is_remade_on_two_others(thrice, tmp_path):
    for number in (1, 2):
        shutil.rmtree(thrice.disks[number])
    with thrice.open() as store:
        for name in "ab":
            await add_disk(workshop_of(store), tmp_path / name)
        async with Kept(store, absent_grace_seconds=0.1) as kept:

            def moved():
                held = count_on(store.titles()[0])
                return held[1] == held[2] == 0

            await kept.wait(moved, seconds=30.0)
        assert await film_digest(store) == thrice.title.sha256
        status = await store_status(workshop_of(store))
        assert (
            status["replicas_there"] == status["replicas_wanted"] == 3 * len(thrice.title.extents)
        )
        assert all(len(set(extent.disks)) == 3 for extent in store.titles()[0].extents)


async def test_an_extent_that_is_two_short_is_given_both(thrice):
    kept = thrice.title.extents[2].disks[:1]
    with thrice.open() as store:
        store.catalog.set_extent_disks(thrice.title.id, 2, kept)
        workshop_of(store).include(thrice.title.id, {2: kept})
        found = survey(store.catalog, store.disk_paths, 3)
        assert [each.kind for each in found.problems()].count("few") == 1
        async with Kept(store) as keeper:
            await keeper.wait(lambda: len(store.titles()[0].extents[2].disks) == 3)
        await workshop_of(store).sweep()
        assert survey(store.catalog, store.disk_paths, 3).findings == []
    assert_whole(thrice, copies=3)


async def test_a_scrub_reads_all_three_and_mends_two(thrice):
    flip_byte(thrice.replica(3, 0), 3)
    thrice.replica(3, 2).unlink()
    with thrice.open() as store:
        workshop = workshop_of(store)

        async def repair(title, extent, disk):
            return await workshop.remake(title.id, extent.number, disk)

        state = await Scrub(workshop, kind="test", rate=None, repair=repair).run(nothing)
        assert state.checked == 3 * len(thrice.title.extents)
        assert (state.bad, state.repaired) == (2, 2)
    assert assert_whole(thrice, copies=3) == thrice.title


async def test_status_counts_three(thrice):
    flip_byte(thrice.replica(1, 0), 5)
    extent = thrice.title.extents[1]
    with thrice.open() as store:
        assert not await store.check_replica(thrice.title, extent, extent.disks[0])
        status = await store_status(workshop_of(store))
    assert status["allocation"] == "rda-3"
    assert status["replicas_wanted"] == 3 * len(thrice.title.extents)
    assert status["replicas_there"] == status["replicas_wanted"] - 1
    assert (status["under_replicated_extents"], status["unreadable_extents"]) == (1, 0)


async def test_a_disk_is_drained_if_three_are_left_and_no_more_of_them(thrice):
    with thrice.open() as store:
        tally = await drain_disk(workshop_of(store), 0, rng(), nothing)
        assert tally.done == count_on(thrice.title)[0]
        with pytest.raises(AllocationError, match="needs 3 disks, and without disk 1 there are 2"):
            await drain_disk(workshop_of(store), 1, rng(), nothing)
    assert count_on(assert_whole(thrice, copies=3))[0] == 0


async def test_a_dead_disk_is_replaced(thrice, tmp_path):
    shutil.rmtree(thrice.disks[2])
    with thrice.open() as store:
        tally = await replace_disk(workshop_of(store), 2, tmp_path / "new", nothing)
        assert tally.done == count_on(thrice.title)[2]
    assert count_on(assert_whole(thrice, copies=3)) == count_on(thrice.title)


async def test_a_new_disk_is_filled_like_the_others(thrice, tmp_path):
    with thrice.open() as store:
        workshop = workshop_of(store)
        await add_disk(workshop, tmp_path / "new")
        for row in store.catalog.disks():
            store.catalog.set_disk(row.number, capacity_bytes=4_000_000)
        store.disk_rows = store.catalog.disks()
        tally = await rebalance(workshop, rng(), nothing, tolerance=0.02)
        assert (tally.done > 0, tally.failed) == (True, 0)
    assert count_on(assert_whole(thrice, copies=3))[4] > 0
