"""add, remove and fsck as a server runs them, with the real store."""

import asyncio
import hashlib
import shutil

import numpy as np
import pytest

from tests.vodserver.conftest import DISKS, flip_byte, make_empty
from vodserver.control import OPERATIONS
from vodserver.errors import ControlUsageError, StoreUsageError
from vodserver.store import open_store
from vodserver.store.blocks import blocks_path
from vodserver.store.events import TitleAdded, TitleRemoved
from vodserver.store.fsck import Finding
from vodserver.store.fsck_repair import repair_findings
from vodserver.store.upkeep.workshop import workshop_of


async def ask(store, operation, /, **arguments):
    """Run an operation as a server does; its result, and what it told on the way."""
    told = []
    result = await OPERATIONS[operation].function(store, arguments, told.append)
    await asyncio.sleep(0)  # what the thread said last
    return result, told


async def test_a_film_is_added_while_the_store_is_open(tmp_path, clock_film):
    with open_store(make_empty(tmp_path)) as store:
        events = []
        store.subscribe(events.append)

        result, told = await ask(store, "add", film=str(clock_film), name="A day")

        assert [type(event) for event in events] == [TitleAdded]
        title = store.title("a-day")
        assert result["id"] == "a-day"
        assert result["sha256"] == title.sha256
        assert told[-1] == {"bytes_done": title.film_bytes, "bytes_total": title.film_bytes}
        data = await store.read(title, 0, title.film_bytes)
        assert hashlib.sha256(data).hexdigest() == title.sha256


async def test_an_add_that_is_cancelled_stops_and_can_be_gone_on_with(tmp_path, clock_film):
    with open_store(make_empty(tmp_path)) as store:
        begun = asyncio.Event()
        task = asyncio.create_task(
            OPERATIONS["add"].function(store, {"film": str(clock_film)}, lambda _: begun.set())
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if store.titles():
            pytest.skip("it was quicker than the cancellation")
        (folder,) = store.catalog.ingests()

        await ask(store, "add", film=str(clock_film))

        assert store.titles()[0].folder == folder


async def test_a_film_is_named_by_its_whole_path(tmp_path):
    """The server's directory is not the command's."""
    with open_store(make_empty(tmp_path)) as store:
        with pytest.raises(ControlUsageError, match="not absolute"):
            await ask(store, "add", film="film.mp4")
        with pytest.raises(ControlUsageError, match="'film' is missing"):
            await ask(store, "add")


async def test_a_title_is_removed_under_the_eyes_of_those_who_watch(home):
    with home.open() as store:
        events = []
        store.subscribe(events.append)

        result, _ = await ask(store, "remove", title="clock")

        assert result["id"] == "clock"
        assert [type(event) for event in events] == [TitleRemoved]
        assert store.titles() == store.catalog.titles() == []
        assert store.catalog.debris() == []
        with pytest.raises(StoreUsageError, match="no title 'clock'"):
            await ask(store, "remove", title="clock")
    assert not [path for disk in home.disks for path in disk.glob("extents/*")]


async def test_a_deep_check_reads_what_is_in_memory_from_the_disk(home):
    """Rot that came after the first reading is found though the store had verified bytes."""
    with home.open() as store:
        await store.read(store.title("clock"), 0, home.title.film_bytes)
        flip_byte(home.replica(1, 0), 70_000)

        shallow, _ = await ask(store, "fsck")
        deep, told = await ask(store, "fsck", deep=True)
        again, _ = await ask(store, "fsck")

    assert shallow["clean"]
    assert deep["counts"] == {"rotten": 1}
    assert again["counts"] == {"bad": 1}
    assert told[-1]["bytes_done"] == told[-1]["bytes_total"] == deep["bytes"]


async def test_what_turns_out_good_is_bad_no_more(home):
    with home.open() as store:
        disk = home.title.extents[0].disks[0]
        store.catalog.note_bad(home.title.folder, 0, disk, "the disk did not answer", 1.0)

        deep, _ = await ask(store, "fsck", deep=True)

        assert deep["clean"]
        assert store.catalog.bad() == []


def damage_everything(home, store):
    """One fault of every kind that can be repaired."""
    home.replica(0, 0).unlink()
    flip_byte(home.replica(1, 1), 10)
    home.replica(2, 0).chmod(0o644)
    home.replica(2, 0).write_bytes(b"short")
    folder = home.disks[0] / "extents" / ("0" * 16)
    folder.mkdir()
    (folder / "000000").write_bytes(b"x")
    (home.disks[1] / "extents" / home.title.folder / ".000009.new").write_bytes(b"x")
    extent = home.title.extents[3]
    other = next(n for n in range(DISKS) if n not in extent.disks)
    target = home.disks[other] / "extents" / home.title.folder
    target.mkdir(exist_ok=True)
    shutil.copy(home.replica(3, 0), target)
    store.catalog.note_garbage(home.title.folder, 3, other)
    store.catalog.begin_ingest("1" * 16, "{}", 1e12)
    store.catalog.abandon_ingest("2" * 16)
    (home.disks[2] / "extents" / ("2" * 16)).mkdir()
    flip_byte(blocks_path(home.path, home.title.folder), 0)
    blocks_path(home.path, "3" * 16).write_bytes(b"of a title that is no more")


async def test_repair_sets_right_all_that_can_be(home):
    with home.open() as store:
        damage_everything(home, store)

        before, _ = await ask(store, "fsck", deep=True)
        result, _ = await ask(store, "fsck", deep=True, repair=True)
        after, _ = await ask(store, "fsck", deep=True)

        assert before["counts"] == {
            "missing": 1,
            "size": 1,
            "rotten": 1,
            "orphan": 3,
            "blocks": 1,
            "stale": 2,
            "unfinished": 1,
        }
        assert result["clean"]
        assert (result["repaired"], result["findings"]) == (10, [])
        assert after["clean"]
        assert store.bad_replicas() == set()
        for extent in store.title("clock").extents:
            for disk in extent.disks:
                assert await store.check_replica(home.title, extent, disk, from_disk=True)


async def test_a_title_without_block_hashes_is_no_problem_and_repair_makes_them(home):
    """As a store of an older version has them."""
    path = blocks_path(home.path, home.title.folder)
    hashes = path.read_bytes()
    path.unlink()
    with home.open() as store:
        store.catalog._db.execute("UPDATE titles SET block_roots=x'', block_sums=x''")
    with home.open() as store:
        assert store.titles()[0].block_roots == b""
        before, _ = await ask(store, "fsck", deep=True)
        after, _ = await ask(store, "fsck", repair=True)

        assert (before["clean"], before["counts"]) == (True, {"unhashed": 1})
        assert (after["clean"], after["counts"], after["repaired"]) == (True, {}, 1)
        assert path.read_bytes() == hashes
        title = store.titles()[0]
        assert title == store.catalog.titles()[0]
        assert title.block_roots == home.title.block_roots


async def test_too_few_and_doubled_replicas_are_made_up_for(home):
    store = home.open()
    store.catalog.set_disk(1, state="lost")
    lost = home.title.extents
    double = next(e for e in lost if 1 not in e.disks)
    store.catalog._db.execute(
        "UPDATE extents SET disks=? WHERE number=?",
        (f"[{double.disks[0]}, {double.disks[0]}]", double.number),
    )
    store.close()

    with home.open() as store:
        before, _ = await ask(store, "fsck")
        result, _ = await ask(store, "fsck", repair=True)

        assert before["counts"] == {"few": sum(1 in e.disks for e in lost), "twice": 1, "orphan": 1}
        assert result["clean"], result["findings"]
        title = store.title("clock")
        assert all(len(set(e.disks)) == 2 and 1 not in e.disks for e in title.extents)
        assert title == store.catalog.title("clock")
        data = await store.read(title, 0, title.film_bytes)
        assert hashlib.sha256(data).hexdigest() == title.sha256


async def test_what_moves_or_goes_while_it_is_read_is_no_problem(home, monkeypatch):
    with home.open() as store:
        real = store.check_replica

        async def check(title, extent, disk, **options):
            if extent.number == 2:
                store.exclude("clock")
            return extent.number < 2 and await real(title, extent, disk, **options)

        monkeypatch.setattr(store, "check_replica", check)
        result, _ = await ask(store, "fsck", deep=True)
        assert (result["clean"], result["findings"]) == (True, [])


async def test_a_finding_is_not_repaired_in_another_title_of_the_same_id(home):
    with home.open() as store:
        workshop = workshop_of(store)
        other = Finding("missing", "", title="clock", folder="0" * 16, extent=999, disk=0)
        few = Finding("few", "", title="clock", folder="0" * 16, extent=999)
        rng = np.random.default_rng(1)
        assert await repair_findings(workshop, [other, few], rng, lambda *_: None) == []
        assert workshop.remade == 0


async def test_what_is_not_the_store_s_is_left_and_stays_a_problem(home):
    mine = home.disks[0] / "extents" / "holiday"
    mine.mkdir()
    with home.open() as store:
        result, _ = await ask(store, "fsck", repair=True)

    assert not result["clean"]
    assert result["counts"] == {"unknown": 1}
    assert mine.exists()


async def test_an_extent_of_which_no_good_replica_is_left_is_told_with_the_reason(home):
    for copy in (0, 1):
        home.replica(2, copy).unlink()
    with home.open() as store:
        result, _ = await ask(store, "fsck", repair=True)

    assert result["counts"] == {"missing": 2}
    assert all("cannot be read" in finding["not_repaired"] for finding in result["findings"])


async def test_a_disk_that_is_away_is_left_to_come_back(home):
    (home.disks[1] / "vod-disk.json").unlink()
    with home.open() as store:
        result, _ = await ask(store, "fsck", deep=True, repair=True)

        assert result["counts"] == {"disk": 1}
        assert store.title("clock") == home.title
