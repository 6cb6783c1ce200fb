"""The disks as one: who waits for what, and who gives up."""

import asyncio
import gc

import pytest

from tests.vodserver.store.gated import ALL, MIDDLE, log, ticks
from vodserver.errors import DiskError
from vodserver.scheduling import SCHEDULERS
from vodserver.store.sums import SUM_SPAN

# --- one read, many waiters


async def test_each_waiter_is_answered_when_its_own_part_is_in(make):
    rig = make(disks=1)
    disk = rig.disks[0]
    first = rig.ask()
    await disk.entered()
    middle, last = rig.ask(begin=MIDDLE, stop=MIDDLE + 1), rig.ask(begin=ALL - 1, stop=ALL)
    await ticks()

    disk.let()
    assert await first == (0, None)
    await disk.entered()
    assert not middle.done()
    disk.let()
    await disk.entered()
    disk.let()
    assert await middle == (0, None)
    assert not last.done()
    disk.let()
    assert await last == (0, None)
    await rig.settle()

    assert log(rig, 0) == [
        (0, SUM_SPAN),
        (SUM_SPAN, 16 * SUM_SPAN),
        (17 * SUM_SPAN, 16 * SUM_SPAN),
        (33 * SUM_SPAN, ALL - 33 * SUM_SPAN),
    ]
    assert rig.learned == [(("t", 0), 0, low, low + size) for low, size in log(rig, 0)]


async def test_what_is_in_already_is_answered_at_once(make):
    rig = make(disks=1)
    await_first = rig.ask()
    await rig.disks[0].entered()
    rig.disks[0].let()
    await await_first

    assert await rig.ask(begin=5, stop=900) == (0, None)
    assert len(rig.array._reads) == 1


async def test_what_lies_before_a_running_read_is_read_for_itself(make):
    rig = make(disks=1)
    later = rig.ask(begin=MIDDLE, stop=MIDDLE + 1)
    await rig.disks[0].entered()
    early = rig.ask()
    await rig.settle()

    assert await later == await early == (0, None)
    assert log(rig, 0)[:1] == [(MIDDLE, SUM_SPAN)]
    assert (0, SUM_SPAN) in log(rig, 0)


@pytest.mark.parametrize("paged", [True, False])
async def test_bytes_that_are_to_be_kept_are_whole_spans_of_the_extent(make, paged):
    rig = make(disks=1, paged=paged)
    flags = {"keep": True}
    asked = [(0, 0, 1), (0, MIDDLE - 3, MIDDLE + 3), (1, SUM_SPAN, 3 * SUM_SPAN + 17), (2, 0, 5)]
    tasks = [rig.ask(*each, **flags) for each in asked]
    await rig.settle()

    for each, task in zip(asked, tasks, strict=True):
        number, data = await task
        assert (number, data) == (0, rig.right(rig.wanted(*each)))
    assert bool(rig.learned) == paged


@pytest.mark.parametrize("paged", [True, False])
async def test_who_keeps_nothing_is_given_no_bytes(make, paged):
    """Also where others keep the same read's: a part of what was asked for would be worse."""
    rig = make(disks=1, paged=paged)
    keeper = rig.ask(stop=3 * SUM_SPAN, keep=True)
    await rig.disks[0].entered()
    other = rig.ask(begin=MIDDLE, stop=MIDDLE + 9)
    await rig.settle()

    assert await other == (0, None)
    assert (await keeper)[1] == rig.films["t", 0][: 3 * SUM_SPAN]


async def test_who_keeps_joins_no_read_whose_bytes_are_gone(make):
    rig = make(disks=1)
    plain = rig.ask()
    await rig.disks[0].entered()
    keeper = rig.ask(begin=MIDDLE, stop=MIDDLE + 9, keep=True)
    await ticks()
    assert len(rig.array._reads) == 2
    await rig.settle()

    assert await plain == (0, None)
    wanted = rig.wanted(begin=MIDDLE, stop=MIDDLE + 9)
    assert await keeper == (0, rig.right(wanted))


async def test_nobody_who_watches_waits_for_background_work(make):
    rig = make(disks=1)
    running = rig.ask(1)
    await rig.disks[0].entered()
    behind = rig.ask(background=True)
    await ticks()
    ahead = rig.ask(stop=2)
    await ticks()
    assert len(rig.array._reads) == 3
    await rig.settle()

    assert [await task for task in (running, behind, ahead)] == [(0, None)] * 3
    sizes = [length for extent, _, length, _ in rig.disks[0].log if extent == ("t", 0)]
    # The watcher's read goes first and to the end; the other reads just what it wanted.
    assert sizes == [SUM_SPAN, 16 * SUM_SPAN, 16 * SUM_SPAN, ALL - 33 * SUM_SPAN, SUM_SPAN]


async def test_background_work_rides_along_with_those_who_watch(make):
    rig = make(disks=1)
    watcher = rig.ask()
    await rig.disks[0].entered()
    rider = rig.ask(begin=MIDDLE, stop=MIDDLE + 9, background=True)
    await ticks()

    assert len(rig.array._reads) == 1
    await rig.settle()
    assert await watcher == await rider == (0, None)


async def test_what_must_come_from_the_disk_itself_is_read_for_itself(make):
    rig = make(disks=1)
    tasks = [rig.ask(), rig.ask(direct=True), rig.ask(direct=True, background=True)]
    await rig.settle()

    assert [await task for task in tasks] == [(0, None)] * 3
    assert sum(direct for *_, direct in rig.disks[0].log) >= 2
    assert all(high <= ALL for _, _, _, high in rig.learned)
    direct = [length for *_, length, direct in rig.disks[0].log if direct]
    assert len(rig.learned) == len(rig.disks[0].log) - len(direct), "direct reads fill no memory"


async def test_a_read_that_one_disk_is_asked_for_is_not_left_to_another(make):
    """A check of one replica must not be answered by the other one."""
    rig = make(disks=2)
    both = rig.ask()
    await rig.disks[0].entered()
    rig.disks[0].faults.add(("t", 0))
    check = rig.ask(stop=2, disks=(0,), background=True)
    await ticks()
    assert len(rig.array._reads) == 1
    await rig.settle()

    assert await both == (1, None)
    with pytest.raises(DiskError, match="I/O error"):
        await check


async def test_whoever_could_be_served_elsewhere_joins_no_read_of_a_disk_that_hangs(make):
    rig = make(disks=2)
    hung = rig.ask(1, disks=(0,))
    await rig.disks[0].entered()
    rig.stall(0)
    parked = rig.ask(disks=(0,))
    await ticks()
    rig.disks[1].open()

    assert await rig.ask() == (1, None)
    assert not parked.done()
    await rig.settle()
    assert await hung == await parked == (0, None)


# --- cancellation


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
@pytest.mark.parametrize("state", ["queued", "running", "answered", "failed", "parked", "stalled"])
async def test_whoever_gives_up_leaves_nothing_behind(make, scheduler, state, caplog):
    rig = make(disks=1, scheduler=scheduler)
    disk = rig.disks[0]
    first = rig.ask(1)
    await disk.entered()
    if state in {"parked", "stalled"}:
        rig.stall(0)
    asking = first if state in {"running", "answered", "failed", "stalled"} else rig.ask()
    await ticks()
    if state == "failed":
        disk.faults.add(("t", 1))
    if state in {"answered", "failed"}:
        # The answer stands in the future, and the task has not seen it when it is cancelled.
        loop, answered = asyncio.get_running_loop(), asyncio.Event()

        def cancel(*_):
            loop.call_soon(asking.cancel)
            answered.set()

        rig.array._learn = rig.array._fault = cancel
        disk.let()
        await answered.wait()
    else:
        asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await rig.settle()
    if asking is not first:
        assert await first == (0, None)
    asking = first = None
    gc.collect()
    assert not caplog.records


async def test_a_read_that_nobody_waits_for_any_more_is_not_made(make):
    rig = make(disks=1)
    running = rig.ask(1)
    await rig.disks[0].entered()
    given_up, stays = rig.ask(), rig.ask(begin=1, stop=2)
    alone = rig.ask(2)
    await ticks()
    for task in (given_up, alone):
        task.cancel()
    await rig.settle()

    assert await running == await stays == (0, None)
    assert all(extent != ("t", 2) for extent, *_ in rig.disks[0].log)


async def test_a_read_under_way_goes_on_when_nobody_waits_for_it(make):
    """The disk has sought already: what comes is read ahead for the next."""
    rig = make(disks=1)
    asking = rig.ask()
    await rig.disks[0].entered()
    asking.cancel()
    await rig.settle()

    assert rig.learned[-1] == (("t", 0), 0, 33 * SUM_SPAN, ALL)
