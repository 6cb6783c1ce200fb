"""What is done about a bad replica, and when."""

import asyncio
import shutil

import numpy as np
import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import assert_whole
from vodserver.errors import AllocationError, ReadError, TargetError
from vodserver.store.upkeep import repair
from vodserver.store.upkeep.health import Condition
from vodserver.store.upkeep.repair import Job, Repairs, decide, mend
from vodserver.store.upkeep.targets import choose_target
from vodserver.store.upkeep.workshop import workshop_of


@pytest.mark.parametrize(
    ("health", "attached", "state", "absent", "decision"),
    [
        ("ok", True, "active", 0.0, "here"),
        (None, True, "active", 0.0, "here"),
        ("slow", True, "active", 0.0, "here"),
        ("full", True, "active", 0.0, "elsewhere"),
        ("read-only", True, "active", 0.0, "elsewhere"),
        ("failing", True, "active", 0.0, "elsewhere"),
        ("ok", True, "draining", 0.0, "elsewhere"),
        ("absent", False, "active", 5.0, "wait"),
        ("absent", True, "active", 5.0, "wait"),
        ("absent", False, "active", 0.0, "elsewhere"),
        ("absent", False, "draining", 5.0, "wait"),
        ("absent", False, "lost", 5.0, "elsewhere"),
        (None, False, "active", 5.0, "wait"),
    ],
)
def test_what_to_do(health, attached, state, absent, decision):
    condition = None if health is None else Condition(health)
    assert decide(condition, attached=attached, state=state, absent=absent) == decision


def rng():
    return np.random.default_rng(2)


def set_health(store, number, health):
    workshop_of(store).conditions[number] = Condition(health)


def first(home, number=1):
    extent = home.title.extents[number]
    return home.title, extent, extent.disks[0]


async def mended(store, title, extent, disk, **options):
    options = {"rng": rng(), "grace": 600.0, **options}
    return await mend(workshop_of(store), title, extent, disk, **options)


async def test_a_rotten_replica_is_made_good_in_its_place(home):
    flip_byte(home.replica(1, 0), 5)
    with home.open() as store:
        assert await mended(store, *first(home)) == 0.0
        assert store.titles() == [home.title]
    assert_whole(home)


@pytest.mark.parametrize("health", ["full", "read-only", "failing"])
async def test_or_elsewhere_if_its_disk_cannot_take_it(home, health):
    flip_byte(home.replica(1, 0), 5)
    title, extent, disk = first(home)
    with home.open() as store:
        set_health(store, disk, health)
        assert await mended(store, title, extent, disk) == 0.0
        placed = store.titles()[0].extents[1].disks
        assert disk not in placed
        await workshop_of(store).sweep()
    assert_whole(home)


async def test_one_that_is_good_after_all_is_trusted_and_not_written(home):
    title, extent, disk = first(home)
    before = home.replica(1, 0).stat()
    with home.open() as store:
        store.catalog.note_bad(title.folder, 1, disk, "the disk did not answer", 0.0)
        assert await mended(store, title, extent, disk) == 0.0
        assert store.catalog.bad() == []
    assert home.replica(1, 0).stat().st_ino == before.st_ino


async def test_a_disk_that_is_gone_is_waited_for(home):
    title, extent, disk = first(home)
    with home.open() as store:
        store.detach_disk(disk)
        assert await mended(store, title, extent, disk) == 600.0
        assert await mended(store, title, extent, disk, grace=0.0) == 0.0
        assert disk not in store.titles()[0].extents[1].disks


async def test_what_has_moved_is_no_concern(home):
    free = min({0, 1, 2, 3} - set(home.title.extents[1].disks))
    with home.open() as store:
        assert await mended(store, home.title, home.title.extents[1], free) == 0.0
        assert workshop_of(store).remade == 0


async def test_without_a_good_replica_it_fails(home):
    flip_byte(home.replica(1, 0), 5)
    flip_byte(home.replica(1, 1), 5)
    with home.open() as store, pytest.raises(ReadError):
        await mended(store, *first(home))


async def test_without_a_disk_that_can_take_it_it_fails(home):
    flip_byte(home.replica(1, 0), 5)
    with home.open() as store:
        for number in range(4):
            set_health(store, number, "full")
        with pytest.raises(AllocationError, match="disk add"):
            await mended(store, *first(home))


async def test_a_target_that_does_not_take_it_is_named(home):
    flip_byte(home.replica(1, 0), 5)
    title, extent, disk = first(home)
    shutil.rmtree(home.disks[disk] / "extents")
    with home.open() as store:
        with pytest.raises(TargetError) as caught:
            await mended(store, title, extent, disk)
        assert caught.value.disk == disk


async def test_a_target_is_no_disk_of_the_extent_and_preferred_if_it_can_be(home):
    _, extent, disk = first(home)
    with home.open() as store:
        workshop = workshop_of(store)
        others = {0, 1, 2, 3} - set(extent.disks)
        found = {choose_target(workshop, extent, rng()) for _ in range(20)}
        assert found <= others
        for other in others:
            assert choose_target(workshop, extent, rng(), preferred=other) == other
        assert choose_target(workshop, extent, rng(), preferred=disk) in others
        gone, left = sorted(others)
        store.detach_disk(gone)
        assert choose_target(workshop, extent, rng(), preferred=gone) == left
        with pytest.raises(AllocationError):
            choose_target(workshop, extent, rng(), avoid=left)


# The queue


def queue(store, **options):
    doubted = []
    repairs = Repairs(
        workshop_of(store),
        **{"grace": 600.0, "workers": 2, "rng": rng(), "doubt": doubted.append, **options},
    )
    return repairs, doubted


async def run_until(repairs, condition, seconds=10.0):
    task = asyncio.ensure_future(repairs.run())
    try:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - a condition of the test's own
                await asyncio.sleep(0.005)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_all_jobs_are_done_once(home):
    for number in (0, 1, 2):
        flip_byte(home.replica(number, 0), 5)
    with home.open() as store:
        repairs, doubted = queue(store)
        for number in (0, 1, 2, 0, 1, 2):
            repairs.want(Job(home.title.id, number, home.title.extents[number].disks[0]))
        repairs.want(Job("no-such-title", 0, 0))
        assert repairs.waiting == 4
        await run_until(repairs, lambda: repairs.waiting == 0)
        assert workshop_of(store).remade == 3
        assert doubted == []
    assert_whole(home)


async def test_an_extent_with_too_few_replicas_gets_another(home):
    with home.open() as store:
        kept = home.title.extents[4].disks[:1]
        store.catalog.set_extent_disks(home.title.id, 4, kept)
        workshop_of(store).include(home.title.id, {4: kept})
        (preferred, _) = sorted({0, 1, 2, 3} - set(home.title.extents[4].disks))
        repairs, _ = queue(store, preferred=lambda: preferred)
        repairs.want(Job(home.title.id, 4, None))
        await run_until(repairs, lambda: repairs.waiting == 0)
        assert store.titles()[0].extents[4].disks == (*kept, preferred)
        await workshop_of(store).sweep()
    assert_whole(home)


async def test_what_fails_is_tried_again(home, monkeypatch):
    monkeypatch.setattr(repair, "_FIRST_RETRY_SECONDS", 0.01)
    flip_byte(home.replica(1, 0), 5)
    title, _, disk = first(home)
    (home.disks[disk] / "extents").rename(home.disks[disk] / "hidden")
    with home.open() as store:
        repairs, doubted = queue(store)
        repairs.want(Job(title.id, 1, disk))
        await run_until(repairs, lambda: len(doubted) >= 3)
        (home.disks[disk] / "hidden").rename(home.disks[disk] / "extents")
        await run_until(repairs, lambda: repairs.waiting == 0)
    assert set(doubted) == {disk}
    assert_whole(home)


async def test_an_error_of_ours_does_not_end_the_queue(home, monkeypatch, caplog):
    """And the job that met it is tried again."""
    monkeypatch.setattr(repair, "_FIRST_RETRY_SECONDS", 0.01)
    flip_byte(home.replica(1, 0), 5)
    flip_byte(home.replica(2, 0), 5)
    real, failed = repair.mend, []

    async def failing(workshop, title, extent, disk, **options):
        if extent.number == 1 and not failed:
            failed.append(extent.number)
            raise RuntimeError("an error of ours")
        return await real(workshop, title, extent, disk, **options)

    monkeypatch.setattr(repair, "mend", failing)
    with home.open() as store:
        repairs, _ = queue(store)
        for number in (1, 2):
            repairs.want(Job(home.title.id, number, home.title.extents[number].disks[0]))
        repairs.want(Job(home.title.id, 999, 0))  # of a longer film that had this id before
        await run_until(repairs, lambda: repairs.waiting == 0)
    assert "an error of ours" in caplog.text
    assert_whole(home)


async def test_what_waits_is_hurried_when_something_changes(home):
    flip_byte(home.replica(1, 0), 5)
    title, _, disk = first(home)
    with home.open() as store:
        set_health(store, disk, "absent")
        repairs, _ = queue(store, grace=1e9)
        repairs.want(Job(title.id, 1, disk))
        await run_until(repairs, lambda: repairs._due and repairs._due[0][0] > 1e6)
        set_health(store, disk, "ok")
        repairs.hurry()
        await run_until(repairs, lambda: repairs.waiting == 0)
    assert_whole(home)


class Stepwise:
    """Stands for `mend`: each attempt waits until the test ends it."""

    def __init__(self):
        self.attempts = []

    async def __call__(self, workshop, title, extent, disk, **options):
        ended = asyncio.get_running_loop().create_future()
        self.attempts.append(ended)
        return await ended


@pytest.fixture
def steps(monkeypatch):
    """In place of `mend`."""
    monkeypatch.setattr(repair, "mend", stepwise := Stepwise())
    return stepwise


async def test_a_replica_that_is_bad_again_while_it_is_made_good_is_made_good_once_more(
    home, steps
):
    """A viewer reads what was just written before the job is over, and the disk fails again."""
    title, _, disk = first(home)
    with home.open() as store:
        repairs, _ = queue(store)
        job = Job(title.id, 1, disk)
        repairs.want(job)

        def go_on():
            if len(steps.attempts) == 1:
                repairs.want(job, delay=0.01)
            for attempt in steps.attempts:
                if not attempt.done():
                    attempt.set_result(0.0)
            return repairs.waiting == 0

        await run_until(repairs, go_on)
    assert len(steps.attempts) == 2


async def test_a_change_for_the_better_is_not_lost_on_a_job_that_fails_meanwhile(
    home, steps, monkeypatch
):
    monkeypatch.setattr(repair, "_FIRST_RETRY_SECONDS", 1e6)
    title, _, disk = first(home)
    with home.open() as store:
        repairs, _ = queue(store)
        repairs.want(Job(title.id, 1, disk))

        def go_on():
            if len(steps.attempts) == 1 and not steps.attempts[0].done():
                repairs.hurry()
                steps.attempts[0].set_exception(TargetError(disk, "it does not take it"))
            elif len(steps.attempts) == 2 and not steps.attempts[1].done():
                steps.attempts[1].set_result(0.0)
            return repairs.waiting == 0

        await run_until(repairs, go_on)
    assert len(steps.attempts) == 2


async def test_a_job_cut_off_in_the_middle_is_done_when_the_queue_runs_again(
    home, steps, monkeypatch
):
    title, _, disk = first(home)
    with home.open() as store:
        repairs, _ = queue(store)
        repairs.want(Job(title.id, 1, disk))
        await run_until(repairs, lambda: len(steps.attempts) == 1)
        monkeypatch.undo()
        await run_until(repairs, lambda: repairs.waiting == 0)
