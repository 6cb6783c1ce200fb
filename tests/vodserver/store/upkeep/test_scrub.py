"""A scrub reads everything, finds what is bad, goes on where it was, and keeps to its rate."""

import asyncio
import time

import pytest

from tests.vodserver.conftest import flip_byte, unlock
from tests.vodserver.store.upkeep.conftest import assert_whole
from vodserver.errors import StoreError
from vodserver.store.blocks import blocks_path
from vodserver.store.upkeep.scrub import Scrub, ScrubState, last_scrub, load_state
from vodserver.store.upkeep.workshop import workshop_of


def replicas(home):
    return sum(len(extent.disks) for extent in home.title.extents)


def scrub_of(store, *, rate=None, repairing=False, kind="test"):
    workshop = workshop_of(store)

    async def repair(title, extent, disk):
        return await workshop.remake(title.id, extent.number, disk)

    return Scrub(workshop, kind=kind, rate=rate, repair=repair if repairing else None)


async def test_a_good_store_is_good(home):
    told = []
    with home.open() as store:
        state = await scrub_of(store).run(told.append)

        assert (state.checked, state.bad, state.unreachable) == (replicas(home), 0, 0)
        assert state.checked_bytes == 2 * home.title.film_bytes
        assert state.finished
        assert last_scrub(store.catalog.get_note) == state
        assert workshop_of(store).scrubbing is None
    assert told[-1] == {
        "checked": replicas(home),
        "bad": 0,
        "repaired": 0,
        "bytes_done": 2 * home.title.film_bytes,
        "bytes_total": 2 * home.title.film_bytes,
    }


async def test_what_is_rotten_short_or_missing_is_found_noted_and_repaired(home):
    flip_byte(home.replica(0, 0), 3)
    unlock(home.replica(3, 1))
    home.replica(3, 1).write_bytes(b"short")
    home.replica(5, 0).unlink()
    with home.open() as store:
        found = await scrub_of(store).run(lambda _: None)
        noted = {(bad.replica.number, bad.fault) for bad in store.catalog.bad()}
        mended = await scrub_of(store, repairing=True).run(lambda _: None)
        again = await scrub_of(store).run(lambda _: None)

    assert (found.checked, found.bad, found.repaired) == (replicas(home), 3, 0)
    assert {number for number, _ in noted} == {0, 3, 5}
    assert any("checksum" in fault for _, fault in noted)
    assert any("shorter" in fault for _, fault in noted)
    assert (mended.bad, mended.repaired) == (3, 3)
    assert (again.checked, again.bad) == (replicas(home), 0)
    assert_whole(home)


async def test_block_hashes_are_read_and_made_again(home):
    path = blocks_path(home.path, home.title.folder)
    hashes = path.read_bytes()
    flip_byte(path, 3)
    with home.open() as store:
        found = await scrub_of(store).run(lambda _: None)
        mended = await scrub_of(store, repairing=True).run(lambda _: None)
        again = await scrub_of(store).run(lambda _: None)

    assert [(s.bad, s.repaired) for s in (found, mended, again)] == [(1, 0), (1, 1), (0, 0)]
    assert path.read_bytes() == hashes


async def test_rot_under_what_is_in_memory_is_found(home):
    """The disk is read, not the memory over it: the film was read whole just before."""
    with home.open() as store:
        title = home.title
        for at in range(0, title.film_bytes, 2**20):
            await store.read(title, at, min(at + 2**20, title.film_bytes))
        flip_byte(home.replica(2, 0), 70_000)
        flip_byte(home.replica(2, 1), 70_000)
        state = await scrub_of(store).run(lambda _: None)
    assert state.bad == 2


async def test_one_that_was_stopped_goes_on_where_it_was(home):
    told = []

    def stop_after(count):
        def progress(state):
            told.append(state)
            if len(told) == count:
                task.cancel()

        return progress

    with home.open() as store:
        task = asyncio.ensure_future(scrub_of(store).run(stop_after(3)))
        with pytest.raises(asyncio.CancelledError):
            await task
        note = load_state(store.catalog.get_note("scrub test"))
        assert 6 <= note.checked < replicas(home)
    with home.open() as store:
        state = await scrub_of(store).run(lambda _: None)
        assert state.checked == replicas(home)
        assert state.started == note.started
        assert state.seconds >= note.seconds
        anew = await scrub_of(store).run(lambda _: None)
        assert anew.started > state.started


async def test_one_that_was_stopped_can_be_begun_anew(home):
    with home.open() as store:
        store.catalog.set_note(
            "scrub test", ScrubState(1.0, folder=home.title.folder, number=5, checked=10).to_note()
        )
        state = await scrub_of(store).run(lambda _: None, anew=True)
    assert state.checked == replicas(home)
    assert state.started > 1.0


async def test_a_disk_that_is_not_there_is_counted_and_not_called_bad(home):
    with home.open() as store:
        store.detach_disk(2)
        state = await scrub_of(store).run(lambda _: None)
        held = sum(2 in extent.disks for extent in home.title.extents)
    assert (state.checked, state.unreachable, state.bad) == (replicas(home) - held, held, 0)


async def test_a_title_that_goes_meanwhile_is_passed_over(home):
    with home.open() as store:
        state = await scrub_of(store).run(lambda _: store.exclude(home.title.id))
    assert state.finished
    assert state.checked == 2


async def test_two_of_a_kind_do_not_run_at_a_time(home):
    with home.open() as store:
        found = await asyncio.gather(
            *(scrub_of(store, kind=kind).run(lambda _: None) for kind in ("one", "one", "two")),
            return_exceptions=True,
        )
        assert [type(each) for each in found] == [ScrubState, StoreError, ScrubState]
        assert workshop_of(store).scrubs == set()


async def test_the_rate_is_kept(home):
    """It takes as long as the bytes before the last replica do at that rate."""
    rate = 2 * home.title.film_bytes / 0.2
    with home.open() as store:
        began = time.monotonic()
        await scrub_of(store, rate=rate).run(lambda _: None)
        took = time.monotonic() - began
    assert took > 0.9 * (0.2 - home.title.extents[-1].size / rate)


@pytest.mark.parametrize("note", [None, "", "null", "[]", "{}", "nonsense", '{"started": 1}'])
def test_a_note_of_another_version_is_no_state(note):
    assert load_state(note) is None


def test_a_note_is_read_as_it_was_written():
    state = ScrubState(5.0, folder="f", number=3, bad=1)
    assert load_state(state.to_note()) == state
