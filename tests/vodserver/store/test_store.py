"""Reading films: always the right bytes, whichever replicas are left."""

import asyncio
import dataclasses
import logging
import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vodserver.conftest import flip_byte, unlock
from vodserver.errors import DiskError, ReadError
from vodserver.scheduling import SCHEDULERS
from vodserver.store import list_titles
from vodserver.store.disks import RealDisk
from vodserver.store.files import OpenFile
from vodserver.store.layout import extent_path
from vodserver.store.reading import ArraySettings
from vodserver.store.store import MAX_READ_BYTES
from vodserver.store.sums import SUM_SPAN


class LoggingDisk(RealDisk):
    """A real disk that keeps a log, fails when a test wants it to, and waits for its gate."""

    def __init__(self, path):
        super().__init__(path)
        self.log = []
        self.fault = None
        self.gate = threading.Event()
        self.gate.set()

    def read(self, extent, offset, length, *, direct=False):
        self.log.append((extent[1], offset, length))
        self.gate.wait(10)
        if self.fault is not None:
            raise self.fault
        return super().read(extent, offset, length, direct=direct)


class CopyingDisk(LoggingDisk):
    """The same, but what it reads is not in the page cache."""

    paged = False


@pytest.fixture
def film(pristine):
    return pristine.film.read_bytes()


@pytest.fixture(params=[LoggingDisk, CopyingDisk])
def opened(home, request):
    with home.open(make_disk=request.param) as store:
        yield store


async def until(condition, *, seconds=5.0):
    """Wait for what a disk's thread does."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a thread sets no event of ours
            await asyncio.sleep(0.002)


def disk_of(store, number) -> LoggingDisk:
    return store._array.disk(number)


@pytest.fixture(scope="module", params=[LoggingDisk, CopyingDisk])
def shared(pristine, request):
    """The pristine store, opened once for tests that only read."""
    with pristine.open(make_disk=request.param) as store:
        yield store


@given(data=st.data())
def test_any_range_is_the_film_s_own_bytes(shared, pristine, data):
    film = pristine.film.read_bytes()
    start = data.draw(st.integers(0, len(film)))
    end = data.draw(st.integers(start, min(len(film), start + MAX_READ_BYTES)))

    assert asyncio.run(shared.read(shared.titles()[0], start, end)) == film[start:end]


@pytest.mark.parametrize(
    ("start", "end"), [(-1, 5), (5, 4), (0, 10**12), (10**12, 10**12), (0, MAX_READ_BYTES + 1)]
)
async def test_a_range_outside_the_film_or_too_long_is_the_caller_s_mistake(shared, start, end):
    with pytest.raises(ValueError, match="bytes"):
        await shared.read(shared.titles()[0], start, end)


_DAMAGE = st.sampled_from(["none", "rot", "missing", "short", "long", "empty"])


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_happens_to_one_replica_of_each_extent_the_film_is_whole(
    pristine, tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("damaged") / "vod"
    home = copy_of(pristine, folder)
    for extent in home.title.extents:
        victim = home.replica(extent.number, data.draw(st.integers(0, 1)))
        damage(victim, data.draw(_DAMAGE), data.draw(st.integers(0, extent.size - 1)))
    film = home.film.read_bytes()

    async def read_all(store):
        return [
            await store.read(home.title, at, min(at + 100_000, len(film)))
            for at in range(0, len(film), 100_000)
        ]

    with home.open(make_disk=LoggingDisk) as store:
        assert b"".join(asyncio.run(read_all(store))) == film
    shutil.rmtree(folder)


def copy_of(pristine, folder):
    from tests.vodserver.conftest import Home, move_disks  # noqa: PLC0415 - one test's need

    shutil.copytree(pristine.path.parent, folder)
    move_disks(folder / "store", folder)
    return Home(folder / "store", pristine.film, pristine.title)


def damage(path, kind, offset):
    if kind == "rot":
        flip_byte(path, offset)
    elif kind == "missing":
        path.unlink()
    elif kind != "none":
        unlock(path)
        data = path.read_bytes()
        path.write_bytes({"short": data[:offset], "long": data + b"x", "empty": b""}[kind])


@pytest.mark.parametrize("kind", ["rot", "missing", "short"])
async def test_what_no_replica_has_is_refused_never_made_up(home, film, kind):
    for copy in (0, 1):
        damage(home.replica(1, copy), kind, SUM_SPAN + 5)
    first = home.title.extent_bytes

    with home.open(make_disk=LoggingDisk) as store:
        with pytest.raises(ReadError, match="extent 1 of 'clock' cannot be read"):
            await store.read(home.title, first + SUM_SPAN, first + SUM_SPAN + 10)

        assert await store.read(home.title, 0, first) == film[:first]
        if kind == "rot":  # the spans around the rot are still good
            assert await store.read(home.title, first, first + 9) == film[first : first + 9]


async def test_a_broken_disk_is_passed_over(opened, home, film):
    disk_of(opened, home.title.extents[0].disks[0]).fault = DiskError("I/O error")

    assert await opened.read(home.title, 0, 1000) == film[:1000]


@pytest.mark.parametrize("kind", [LoggingDisk, CopyingDisk])
@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
@pytest.mark.parametrize("first_to_come_to", [0, 1])
async def test_disks_that_hang_are_passed_over(home, film, kind, scheduler, first_to_come_to):
    reading = ArraySettings(stall_seconds=0.02)
    with home.open(make_disk=kind, scheduler=scheduler, reading=reading) as store:
        extent = home.title.extents[0]
        for number in extent.disks:
            disk_of(store, number).gate.clear()
        asking = asyncio.create_task(store.read(home.title, 0, 1000))
        await until(lambda: sum(len(disk_of(store, n).log) for n in extent.disks) >= 2)
        await until(lambda: sum(d.stalled for d in store.statistics().disks.values()) == 2)
        good = extent.disks[first_to_come_to]
        bad = extent.disks[1 - first_to_come_to]
        disk_of(store, good).gate.set()

        assert await asking == film[:1000]
        assert store.statistics().disks[bad].stalled
        assert store.load(bad) is None
        assert store.statistics().bad_replicas == 0  # slow is not wrong

        disk_of(store, bad).gate.set()
        await until(lambda: not store.statistics().disks[bad].stalled)
        assert store.load(bad) is not None


async def test_a_film_whose_only_disks_hang_fails_in_time_and_plays_when_they_come_to(home, film):
    reading = ArraySettings(stall_seconds=0.01, read_timeout_seconds=0.05)
    with home.open(make_disk=LoggingDisk, reading=reading) as store:
        disks = [disk_of(store, number) for number in home.title.extents[0].disks]
        for disk in disks:
            disk.gate.clear()

        with pytest.raises(ReadError, match=r"no disk answered within 0\.05 s"):
            await store.read(home.title, 0, 1000)

        for disk in disks:
            disk.gate.set()
        assert await store.read(home.title, 0, 1000) == film[:1000]
        assert store.statistics().bad_replicas == 0


async def test_a_read_goes_on_to_the_end_of_the_extent(opened, home):
    extent = home.title.extents[0]
    await opened.read(home.title, SUM_SPAN + 3, SUM_SPAN + 4)
    last = home.title.extents[-1]
    await opened.read(home.title, home.title.film_bytes - 1, home.title.film_bytes)

    logs = [entry for n in opened.disk_paths for entry in disk_of(opened, n).log]
    assert logs[0] == (0, SUM_SPAN, SUM_SPAN)
    read = sorted(entry for entry in logs if entry[0] == 0)
    assert sum(length for _, _, length in read) == extent.size - SUM_SPAN
    assert (last.number, last.size // SUM_SPAN * SUM_SPAN, last.size % SUM_SPAN) in logs


@pytest.mark.parametrize(("prefetch", "spans"), [(0, 1), (1, 2), (SUM_SPAN, 2)])
async def test_how_far_a_read_goes_on_can_be_set(home, prefetch, spans):
    reading = ArraySettings(prefetch_bytes=prefetch)
    with home.open(make_disk=LoggingDisk, reading=reading) as store:
        await store.read(home.title, 0, 10)
        await until(lambda: sum(d.disk_reads for d in store.statistics().disks.values()) >= 1)

        done = store.statistics().disks.values()
        assert sum(disk.read_bytes for disk in done) == spans * SUM_SPAN


async def test_what_is_in_memory_costs_the_disks_nothing(home, film):
    with home.open(make_disk=LoggingDisk) as store:
        assert store.ready(home.title, 0, 1000) is None
        await store.fetch(home.title, 0, 1000)
        reads = sum(len(disk_of(store, n).log) for n in store.disk_paths)

        ready = store.ready(home.title, 5, 1000)

        assert (ready.offset, ready.size) == (5, 995)
        assert os.pread(ready.file.fd, ready.size, ready.offset) == film[5:1000]
        assert sum(len(disk_of(store, n).log) for n in store.disk_paths) == reads
        store.note_resident(ready.disk, ready.size)
        disks = store.statistics().disks.values()
        assert sum(disk.resident_reads for disk in disks) == 1
        assert sum(disk.resident_bytes for disk in disks) == 995


async def test_a_replica_that_is_removed_is_never_sent_from_memory(home):
    with home.open(make_disk=LoggingDisk) as store:
        await store.fetch(home.title, 0, 1000)
        assert store.ready(home.title, 0, 1000) is not None
        for copy in (0, 1):
            home.replica(0, copy).unlink()

        assert store.ready(home.title, 0, 1000) is None
        with pytest.raises(ReadError):
            await store.fetch(home.title, 0, 1000)


async def test_rot_in_memory_that_was_never_verified_is_noticed(home, film):
    """Whoever opens the store finds pages that another process read, perhaps wrong ones."""
    rotten = home.title.extents[0].disks[0]
    flip_byte(home.replica(0, 0), 700)
    with home.open(make_disk=LoggingDisk) as store:
        store._memory.learn((home.title.folder, 0), rotten, 0, 0, OpenFile(home.replica(0, 0)))
        store._sources[home.title.folder, 0] = rotten

        assert store.ready(home.title, 0, 1000) is None
        assert store.bad_replicas() == {(home.title.folder, 0, rotten)}
        assert await store.read(home.title, 0, 1000) == film[:1000]


async def test_many_who_want_the_same_are_served_by_one_read(opened, home, film):
    number, other = home.title.extents[0].disks
    for each in (number, other):
        disk_of(opened, each).gate.clear()
    wanting = [
        asyncio.create_task(opened.read(home.title, at, at + 100)) for at in range(0, 5000, 500)
    ]
    await asyncio.sleep(0)
    for each in (number, other):
        disk_of(opened, each).gate.set()

    assert await asyncio.gather(*wanting) == [film[at : at + 100] for at in range(0, 5000, 500)]
    logs = disk_of(opened, number).log + disk_of(opened, other).log
    assert len([entry for entry in logs if entry[1] == 0]) == 1


async def test_a_disk_that_goes_hands_its_reads_to_the_others(opened, home, film):
    first, second = home.title.extents[0].disks
    for number in (first, second):
        disk_of(opened, number).gate.clear()
    asking = asyncio.create_task(opened.read(home.title, 0, 1000))
    await asyncio.sleep(0)
    gone = disk_of(opened, first)
    disk_of(opened, second).gate.set()
    opened.detach_disk(first)

    assert await asking == film[:1000]
    assert first not in opened.statistics().disks
    gone.gate.set()
    row = next(row for row in opened.disk_rows if row.number == first)
    opened.attach_disk(row, home.disks[first])
    opened.detach_disk(second)
    assert await opened.read(home.title, 0, 1000) == film[:1000]


async def test_what_nobody_waits_for_any_more_is_not_read(opened, home):
    numbers = home.title.extents[0].disks
    for number in opened.disk_paths:
        disk_of(opened, number).gate.clear()
    first = [
        asyncio.create_task(opened.read(home.title, extent.number * home.title.extent_bytes, at))
        for extent in home.title.extents
        for at in [extent.number * home.title.extent_bytes + 1]
    ]
    await asyncio.sleep(0)
    for task in first:
        task.cancel()
    await asyncio.gather(*first, return_exceptions=True)
    for number in opened.disk_paths:
        disk_of(opened, number).gate.set()

    await opened.read(home.title, 0, 1)
    assert sum(s.queued_reads for s in opened.statistics().disks.values()) == 0
    assert numbers == home.title.extents[0].disks


async def test_a_bad_replica_is_told_once_and_then_tried_last(home, caplog):
    with home.open(make_disk=CopyingDisk, scheduler="shortest-queue") as opened:
        await bad_replica_is_told_once(opened, home, caplog)


async def bad_replica_is_told_once(opened, home, caplog):
    told = []

    def listen(event):
        told.append((event.title.id, event.extent.number, event.disk, event.fault))

    opened.subscribe(listen)
    number = home.title.extents[0].disks[0]
    bad = disk_of(opened, number)
    bad.fault = DiskError("I/O error")

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await opened.read(home.title, 0, 10)

    assert told == [("clock", 0, number, "I/O error")]
    assert [record.message for record in caplog.records] == [
        f"bad replica: extent 0 of 'clock' on disk {number}: I/O error"
    ]
    assert len(bad.log) == 1
    assert opened.statistics().bad_replicas == 1


async def test_a_replica_that_reads_well_again_is_good_again(opened, home):
    extent = home.title.extents[0]
    number = extent.disks[0]
    disk_of(opened, number).fault = DiskError("cable")
    assert not await opened.check_replica(home.title, extent, number)
    assert opened.statistics().bad_replicas == 1
    disk_of(opened, number).fault = None

    assert await opened.check_replica(home.title, extent, number)
    assert opened.statistics().bad_replicas == 0


async def test_checking_a_replica_reads_all_of_it(opened, home):
    extent = home.title.extents[0]
    good, rotten = extent.disks
    flip_byte(home.replica(0, 1), extent.size - 1)

    assert await opened.check_replica(home.title, extent, good)
    assert not await opened.check_replica(home.title, extent, rotten)
    assert not await opened.check_replica(home.title, extent, 99)


async def test_one_disk_may_be_away(home, film):
    away = home.title.extents[0].disks[0]
    shutil.rmtree(home.disks[away])

    with home.open() as store:
        assert away not in store.disk_paths
        assert store.replica_path(home.title, home.title.extents[0], away) is None
        assert await store.read(home.title, 0, 100_000) == film[:100_000]


async def test_real_disks_serve_the_whole_film(home, film):
    with home.open() as store:
        data = await store.read(home.title, 0, len(film))
        statistics = store.statistics()

    assert data == film
    assert sum(disk.read_bytes for disk in statistics.disks.values()) == len(film)
    assert sum(disk.failed_reads for disk in statistics.disks.values()) == 0


def leave_debris(home, folder):
    with home.open() as store:
        store.catalog.begin_ingest(folder)
    for disk in home.disks[:3]:
        path = extent_path(disk, folder, 0)
        path.parent.mkdir()
        path.write_bytes(b"half a film")
        path.chmod(0o444)


def test_what_a_crash_left_is_gone_when_the_store_is_opened_again(home):
    leave_debris(home, "0123456789abcdef")

    with home.open() as store:
        assert store.catalog.debris() == []
        assert [title.id for title in store.titles()] == ["clock"]

    for disk in home.disks:
        assert [path.name for path in (disk / "extents").iterdir()] in ([], [home.title.folder])


def test_debris_on_a_disk_that_is_away_is_remembered_until_it_is_back(home):
    leave_debris(home, "0123456789abcdef")
    home.disks[1].rename(home.disks[1].with_name("unplugged"))

    with home.open() as store:
        assert store.catalog.debris() == ["0123456789abcdef"]

    home.disks[1].with_name("unplugged").rename(home.disks[1])
    with home.open() as store:
        assert store.catalog.debris() == []
    assert not (home.disks[1] / "extents" / "0123456789abcdef").exists()


def test_folders_that_no_ingest_began_are_never_removed(home):
    mine = home.disks[0] / "extents" / "holiday"
    mine.mkdir()

    home.open().close()

    assert mine.exists()


def test_titles_are_listed_while_another_process_has_the_store(opened, home):
    assert [title.id for title in list_titles(home.path)] == ["clock"]
    assert list_titles(home.path) == opened.titles()


def test_a_title_is_found_by_its_id_alone(opened, home):
    assert opened.title("clock") == home.title
    for wrong in ("", "Clock", "clock/", "../clock", "0"):
        assert opened.title(wrong) is None


async def test_a_film_is_not_mixed_with_another_one_that_came_under_its_name(opened, home, film):
    """Whoever is in the middle of the first one gets its bytes, or an error."""
    begun = opened.titles()[0]
    await opened.read(begun, 0, 1000)
    opened.exclude(begun.id)
    opened.include(dataclasses.replace(begun, folder="0123456789abcdef"))

    assert await opened.read(begun, 500, 2000) == film[500:2000]
    with pytest.raises(ReadError):
        await opened.read(opened.titles()[0], 0, 1000)


def path_of(file):
    return Path(f"/proc/self/fd/{file.fd}").readlink()


async def test_a_disk_that_comes_back_elsewhere_is_read_there(home, film):
    """Replicas of the old place that are still open are not sent under its number."""
    with home.open(make_disk=LoggingDisk) as store:
        number = home.title.extents[0].disks[0]
        await store.check_replica(home.title, home.title.extents[0], number)
        row = next(row for row in store.disk_rows if row.number == number)
        moved = home.disks[number].with_name("moved")
        shutil.copytree(home.disks[number], moved)
        store.attach_disk(row, moved)

        ready = store.ready(home.title, 0, 1000) or await store.fetch(home.title, 0, 1000)
        await store.check_replica(home.title, home.title.extents[0], number)
        ready = store.ready(home.title, 0, 1000)
        assert ready.disk != number or path_of(ready.file).is_relative_to(moved)
        assert os.pread(ready.file.fd, ready.size, ready.offset) == film[:1000]
