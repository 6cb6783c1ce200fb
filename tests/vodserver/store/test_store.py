"""Reading films: always the right bytes, whichever replicas are left."""

import asyncio
import logging
import shutil
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vodserver.conftest import flip_byte, unlock
from vodserver.errors import DiskError, ReadError
from vodserver.store import list_titles
from vodserver.store.disks import DiskStatistics
from vodserver.store.layout import extent_path
from vodserver.store.store import MAX_READ_BYTES
from vodserver.store.sums import SUM_SPAN


class FileDisk:
    """A disk that reads its files at once, has whatever queue a test gives it, and keeps a log."""

    def __init__(self, path):
        self.path = path
        self.queued_bytes = 0
        self.log = []
        self.fault = None

    async def read(self, extent, offset, length):
        self.log.append((extent[1], offset, length))
        if self.fault is not None:
            raise self.fault
        try:
            data = extent_path(self.path, *extent).read_bytes()[offset : offset + length]
        except OSError as error:
            raise DiskError(str(error)) from error
        if len(data) < length:
            raise DiskError("shorter than it was written")
        return memoryview(data)

    def statistics(self):
        return DiskStatistics(self.queued_bytes, 0, len(self.log), 0, 0)

    def close(self):
        self.path = None


@pytest.fixture
def film(pristine):
    return pristine.film.read_bytes()


@pytest.fixture
def opened(home):
    with home.open(make_disk=FileDisk) as store:
        yield store


@pytest.fixture(scope="module")
def shared(pristine):
    """The pristine store, opened once for tests that only read."""
    with pristine.open(make_disk=FileDisk) as store:
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

    with home.open(make_disk=FileDisk) as store:
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

    with home.open(make_disk=FileDisk) as store:
        with pytest.raises(ReadError, match="extent 1 of 'clock' cannot be read"):
            await store.read(home.title, first + SUM_SPAN, first + SUM_SPAN + 10)

        assert await store.read(home.title, 0, first) == film[:first]
        if kind == "rot":  # the spans around the rot are still good
            assert await store.read(home.title, first, first + 9) == film[first : first + 9]


async def test_a_broken_disk_is_passed_over(opened, home, film):
    opened._disks[home.title.extents[0].disks[0]].fault = DiskError("I/O error")

    assert await opened.read(home.title, 0, 1000) == film[:1000]


async def test_a_disk_that_hangs_is_passed_over(home, film):
    go = threading.Event()
    with home.open(read_timeout=0.02) as store:
        extent = home.title.extents[0]
        hanging = store._disks[extent.disks[0]]
        original = hanging._blocking_read
        hanging._blocking_read = lambda *arguments: (go.wait(10), original(*arguments))[1]

        assert await store.read(home.title, 0, 1000) == film[:1000]
        assert store.statistics().bad_replicas == 1
        assert hanging.queued_bytes > 0

        go.set()


async def test_the_replica_with_the_shorter_queue_is_read(opened, home):
    first, second = (opened._disks[number] for number in home.title.extents[0].disks)
    first.queued_bytes, second.queued_bytes = 10, 5
    await opened.read(home.title, 0, 10)
    assert (len(first.log), len(second.log)) == (0, 1)

    first.queued_bytes = 1
    await opened.read(home.title, 0, 10)
    assert (len(first.log), len(second.log)) == (1, 1)


async def test_only_the_spans_that_are_needed_are_read(opened, home):
    await opened.read(home.title, SUM_SPAN + 3, SUM_SPAN + 4)

    logs = [entry for disk in opened._disks.values() for entry in disk.log]
    assert logs == [(0, SUM_SPAN, SUM_SPAN)]


async def test_a_bad_replica_is_told_once_and_then_tried_last(opened, home, caplog):
    told = []
    opened.on_bad_replica = lambda title, extent, disk: told.append((title.id, extent.number, disk))
    number = home.title.extents[0].disks[0]
    bad = opened._disks[number]
    bad.fault = DiskError("I/O error")

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await opened.read(home.title, 0, 10)

    assert told == [("clock", 0, number)]
    assert [record.message for record in caplog.records] == [
        f"bad replica: extent 0 of 'clock' on disk {number}: I/O error"
    ]
    assert len(bad.log) == 1
    assert opened.statistics().bad_replicas == 1


async def test_a_replica_that_reads_well_again_is_good_again(opened, home):
    extent = home.title.extents[0]
    number = extent.disks[0]
    opened._disks[number].fault = DiskError("cable")
    await opened.read(home.title, 0, 10)
    opened._disks[number].fault = None

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
