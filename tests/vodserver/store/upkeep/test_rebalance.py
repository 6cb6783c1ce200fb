"""After a disk was added, rebalance fills it, and nothing is lost on the way."""

import asyncio

import numpy as np
import pytest

from tests.vodserver.store.upkeep.conftest import assert_whole, count_on, film_digest
from vodserver.errors import DiskError
from vodserver.store.upkeep.batch import Step, run_steps
from vodserver.store.upkeep.disks import add_disk
from vodserver.store.upkeep.rebalance import rebalance
from vodserver.store.upkeep.workshop import workshop_of


def shrink(store, size):
    """Have the disks count as small ones: the films of a test are small too."""
    for row in store.catalog.disks():
        store.catalog.set_disk(row.number, capacity_bytes=size)
    store.disk_rows = store.catalog.disks()


def nothing(_):
    pass


async def test_a_new_disk_is_filled_like_the_others(home, tmp_path):
    told = []
    with home.open() as store:
        workshop = workshop_of(store)
        await add_disk(workshop, tmp_path / "new")
        shrink(store, 4_000_000)
        tally = await rebalance(workshop, np.random.default_rng(1), told.append, tolerance=0.02)
        assert tally.done > 0
        assert tally.failed == 0
        assert len(told) == tally.done
        again = await rebalance(workshop, np.random.default_rng(1), nothing, tolerance=0.02)
        assert again.done == 0
        used = workshop.used()
        assert await film_digest(store) == home.title.sha256
    assert used[4] > 0
    largest = max(extent.size for extent in home.title.extents)
    assert max(used.values()) - min(used.values()) <= 2 * 0.02 * 4_000_000 + largest
    assert_whole(home)


async def test_one_that_was_stopped_leaves_the_store_whole(home, tmp_path):
    with home.open() as store:
        workshop = workshop_of(store)
        await add_disk(workshop, tmp_path / "new")
        shrink(store, 4_000_000)
        task = asyncio.ensure_future(
            rebalance(workshop, np.random.default_rng(1), lambda _: task.cancel(), tolerance=0.02)
        )
        with pytest.raises(asyncio.CancelledError):
            await task
        await workshop.sweep()
        assert count_on(store.titles()[0])[4] > 0
    assert_whole(home)


async def test_a_step_that_fails_does_not_stop_the_others(home):
    title = home.title

    async def work(step):
        if step.extent.number == 1:
            raise DiskError("it is broken")
        return step.extent.number != 2

    told = []
    tally = await run_steps([Step(title, each, 0) for each in title.extents], work, told.append)

    assert (tally.done, tally.failed) == (len(title.extents) - 2, 1)
    assert tally.faults == ["it is broken"]
    assert told[-1]["done"] == told[-1]["total"] == len(title.extents)
    assert tally.done_bytes == sum(e.size for e in title.extents if e.number not in {1, 2})


async def test_no_steps_are_no_work():
    tally = await run_steps([], None, nothing)
    assert (tally.done, tally.failed) == (0, 0)
