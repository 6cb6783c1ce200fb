"""A worker's store: bytes are the film's, whatever happens to replicas, memory and main process."""

import asyncio
import dataclasses
import os
import shutil

import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.workers.conftest import drop_caches, heard, replicas_of
from vodserver.errors import ReadError
from vodserver.http.admission import Refusal
from vodserver.store.blocks import blocks_path
from vodserver.store.events import BlocksBad
from vodserver.store.removal import remove_title


def bytes_of(ready):
    if ready.view is not None:
        return bytes(ready.view)
    return os.pread(ready.file.fd, ready.size, ready.offset)


async def read(remote, title, at, end):
    """Bytes [at, end), as the sender would have them."""
    data = b""
    while at < end:
        ready = remote.ready(title, at, end) or await remote.fetch(title, at, end)
        data += bytes_of(ready)
        at += ready.size
    return data


@pytest.fixture
def film(clock_film):
    return clock_film.read_bytes()


async def test_a_whole_film_by_way_of_the_main_process_is_the_film(home, staff, film):
    drop_caches(*replicas_of(home))
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")

        assert at.remote.ready(title, 0, 1000) is None
        assert await read(at.remote, title, 0, title.film_bytes) == film
        assert at.remote.titles() == store.titles()


async def test_what_could_not_be_sent_is_looked_at_by_the_main_process(home, staff):
    """It is not offered meanwhile, and again when it was found to be good."""
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        disk = title.extents[0].disks[0]

        at.remote.note_fault(title, 7, disk, "it cannot be read")
        assert (title.folder, 0, disk) in at.remote._resident.bad
        async with asyncio.timeout(5):
            while at.remote._resident.bad:  # noqa: ASYNC110 - the answer comes over a socket
                await asyncio.sleep(0.005)
        assert store.bad_replicas() == set()


async def test_bytes_that_are_to_be_handed_over_are(home, staff, film):
    """Where memory cannot be asked whether it has them."""
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        for source in (store, at.remote):
            ready = await source.fetch(title, 100, 5000, keep=True)
            assert bytes(ready.view) == film[100:5000]


async def test_block_hashes_are_read_here_and_bad_ones_told_of(home, staff):
    path = blocks_path(home.path, home.title.folder)
    hashes = path.read_bytes()
    with home.open() as store:
        told = []
        store.subscribe(told.append)
        at = await staff(store)
        title = at.remote.title("clock")

        assert await at.remote.read_blocks(title, 32, 96) == hashes[32:96]
        flip_byte(path, 64)
        with pytest.raises(ReadError, match="not what was written"):
            await at.remote.read_blocks(title, 0, 32)
        async with asyncio.timeout(5):
            while not told:  # noqa: ASYNC110 - the news comes over a socket
                await asyncio.sleep(0.005)
        assert told == [BlocksBad(store.titles()[0])]


async def test_what_is_open_and_in_memory_is_not_asked_for(home, staff, film):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        await at.remote.fetch(title, 0, 1000)
        before = sum(disk.disk_reads for disk in store.statistics().disks.values())

        ready = at.remote.ready(title, 500, title.extent_bytes)

        assert bytes_of(ready) == film[500 : title.extent_bytes]
        assert sum(d.disk_reads for d in store.statistics().disks.values()) == before


async def test_many_who_want_the_same_have_one_replica_opened(home, staff, film):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")

        parts = await asyncio.gather(*(at.remote.fetch(title, n, n + 100) for n in range(40)))

        assert [bytes_of(part) for part in parts] == [film[n : n + 100] for n in range(40)]
        assert len({part.file.fd for part in parts if part.disk == parts[0].disk}) == 1


async def test_rot_in_memory_is_not_sent_and_the_main_process_is_told(home, staff, film):
    """The worker itself finds it: what it verified before does not count once the file changed."""
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        disk = (await at.remote.fetch(title, 0, 1000)).disk
        copy = title.extents[0].disks.index(disk)
        flip_byte(home.replica(0, copy), 100)

        assert await read(at.remote, title, 0, 5000) == film[:5000]

        async with asyncio.timeout(5):
            while not store.bad_replicas():  # noqa: ASYNC110 - it is found in its own time
                await asyncio.sleep(0.01)
        assert store.bad_replicas() == {(title.folder, 0, disk)}


async def test_a_replica_that_is_removed_is_read_from_the_other_disk(home, staff, film):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        await read(at.remote, title, 0, title.extent_bytes)
        for extent in title.extents:
            home.replica(extent.number, 0).unlink()

        assert await read(at.remote, title, 0, title.film_bytes) == film


async def test_without_any_replica_there_is_an_error_that_says_what(home, staff):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        for disk in home.disks:
            shutil.rmtree(disk / "extents")

        with pytest.raises(ReadError, match="extent 2 of 'clock'"):
            await at.remote.fetch(title, 2 * title.extent_bytes, title.film_bytes)


async def test_disks_that_a_worker_cannot_open_have_their_bytes_sent_over(home, staff, film):
    """As where memory is so short that nothing stays in it: three tries, then the bytes."""
    with home.open() as store:
        at = await staff(store)
        at.remote.set_disks({})
        title = at.remote.title("clock")

        ready = await at.remote.fetch(title, 10, 200_000)

        assert ready.file is None
        assert bytes_of(ready) == film[10 : min(200_000, title.extent_bytes)]
        assert await read(at.remote, title, 0, title.film_bytes) == film


async def test_what_lies_on_a_disk_that_went_is_let_go_of(home, staff):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        ready = await at.remote.fetch(title, 0, 1000)
        assert ready.file is not None
        at.remote.set_disks({})

        assert at.remote.ready(title, 0, 1000) is None


async def test_titles_come_change_and_go_with_the_news(home, staff, film):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        await at.remote.fetch(title, 0, 100)
        opened = at.remote._memory
        assert any(opened.has((title.folder, 0), n) for n in range(4))

        remove_title(store.catalog, store.disk_paths, "clock")
        store.exclude("clock")
        at.remote.renew("clock")

        assert at.remote.title("clock") is None
        assert at.remote.titles() == []
        assert not any(opened.has((title.folder, 0), n) for n in range(4))
        with pytest.raises(ReadError):
            await at.remote.fetch(title, title.extent_bytes, title.film_bytes)


async def test_of_a_replica_that_moved_the_old_file_is_let_go(home, staff):
    """Or its space would not be free before the worker ends."""
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        disk = (await at.remote.fetch(title, 0, 100)).disk
        kept = tuple(n for n in title.extents[0].disks if n != disk)
        first = dataclasses.replace(title.extents[0], disks=kept)
        now = dataclasses.replace(title, extents=(first, *title.extents[1:]))

        store.include(now)
        at.remote._resident.forget_title(title, now)

        assert not at.remote._memory.has((title.folder, 0), disk)
        assert not store._memory.has((title.folder, 0), disk)


async def test_what_was_sent_from_memory_is_counted_by_disk_in_the_main_process(home, staff):
    with home.open() as store:
        at = await staff(store)
        for size in (100, 200, 300):
            at.remote.note_resident(2, size)
        at.remote.note_resident(0, 7)
        at.remote.tell_resident()
        at.remote.tell_resident()
        await heard(at.theirs)

        disks = store.statistics().disks
        assert (disks[2].resident_reads, disks[2].resident_bytes) == (3, 600)
        assert (disks[0].resident_reads, disks[0].resident_bytes) == (1, 7)


async def test_when_the_main_process_is_gone_reading_fails_and_does_not_wait(home, staff):
    drop_caches(*replicas_of(home))
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        await at.ours.close()
        await at.theirs.closed.wait()

        with pytest.raises(ReadError, match="gone"):
            await at.remote.fetch(title, 0, 100)
        answer = await at.gate.admit(title, 0, 100, 1e4)
        assert isinstance(answer, Refusal)


async def test_streams_of_all_workers_share_one_limit(home, staff):
    with home.open() as store:
        at = await staff(store, streams_limit=2)
        title = at.remote.title("clock")
        rate = title.film_bytes / title.duration

        async def admit():
            return await at.gate.admit(title, 0, title.film_bytes, rate)

        first, second, third = [await admit() for _ in range(3)]
        assert callable(first)
        assert callable(second)
        assert isinstance(third, Refusal)
        assert third.cause == "streams"
        assert third.retry_seconds > 1

        first()
        first()  # more than once does no harm
        assert callable(await admit())
        assert isinstance(await admit(), Refusal)


async def test_a_client_that_leaves_while_leave_is_asked_for_keeps_no_ticket(home, staff):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        for turns in range(6):
            task = asyncio.create_task(at.gate.admit(title, 0, 1000, 1e4))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            answer = (await asyncio.gather(task, return_exceptions=True))[0]
            if callable(answer):
                answer()
        await heard(at.theirs)

        assert at.office.streams.admission.statistics().streams == 0


async def test_the_tickets_of_a_worker_that_died_are_released(home, staff):
    with home.open() as store:
        at = await staff(store)
        title = at.remote.title("clock")
        for _ in range(3):
            await at.gate.admit(title, 0, 1000, 1e4)
        assert at.office.streams.admission.statistics().streams == 3

        at.desk.close()

        told = at.office.streams.admission.statistics()
        assert (told.streams, told.admitted) == (0, 3)
