"""The disks as one when they are closed, and when event loops end before their reads."""

import asyncio
import threading

import pytest

from tests.vodserver.store.gated import SECONDS, ticks
from vodserver.errors import DiskError
from vodserver.scheduling import SCHEDULERS
from vodserver.store.sums import SUM_SPAN

# --- the end


def disk_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("disk ")]


@pytest.mark.parametrize("state", ["idle", "running", "queued", "stalled", "parked", "detached"])
async def test_closing_ends_every_thread_and_every_wait(make, state):
    rig = make(disks=1)
    tasks = []
    if state != "idle":
        tasks.append(rig.ask(1))
        await rig.disks[0].entered()
    if state in {"stalled", "parked"}:
        rig.stall(0)
    if state in {"queued", "parked"}:
        tasks.append(rig.ask())
        await ticks()
    thread = rig.array._slots[0].thread
    if state == "detached":
        rig.array.detach(0)
    rig.disks[0].open()
    rig.array.close()

    for task in tasks:
        with pytest.raises(DiskError, match="the store is closed"):
            await task
    await asyncio.to_thread(thread.join, SECONDS)
    assert not thread.is_alive()
    assert rig.disks[0].closed == 1
    with pytest.raises(DiskError, match="none of its disks"):
        await rig.ask(disks=(0,))
    await ticks()
    rig.array.close()
    assert not any(rig.rest())


def test_threads_end_though_the_loop_ended_before_their_reads(make):
    rig = make(disks=2)
    others = len(disk_threads()) - 2

    async def leave():
        task = rig.ask()
        await rig.disks[0].entered()
        task.cancel()

    asyncio.run(leave())
    rig.close()
    assert len(disk_threads()) == others


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
@pytest.mark.parametrize("stalled", [False, True])
@pytest.mark.parametrize("polite", [False, True])
def test_a_new_loop_is_served_after_one_that_ended_in_a_read(make, scheduler, stalled, polite):
    """Also where the old loop ended without its tasks, or while a disk hung."""
    rig = make(disks=1, scheduler=scheduler)
    loop = asyncio.new_event_loop()

    async def leave():
        tasks = [rig.ask(), rig.ask(1)]
        await rig.disks[0].entered()
        if stalled:
            rig.stall(0)
            tasks.append(rig.ask(2))
            await ticks()
        if polite:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return tasks

    left = loop.run_until_complete(leave())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()

    async def ask():
        task = rig.ask(2, keep=True)
        await ticks()
        rig.disks[0].open()
        assert await task == (0, rig.films["t", 2])
        await rig.settle()

    asyncio.run(ask())
    for task in left:
        task._log_destroy_pending = False


def test_disks_come_and_go_between_loops(make):
    rig = make(disks=2)
    loop = asyncio.new_event_loop()

    async def leave():
        tasks = [rig.ask(number) for number in (0, 1, 2)]
        for disk in rig.disks.values():
            await disk.entered()
        return tasks

    left = loop.run_until_complete(leave())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    for disk in rig.disks.values():
        disk.open()
    rig.array.detach(0)
    rig.attach(0)
    rig.disks[0].open()

    async def ask():
        assert (await rig.ask(1))[1] is None
        await rig.settle()

    asyncio.run(ask())
    for task in left:
        task._log_destroy_pending = False


def test_one_loop_after_another(make):
    rig = make(disks=2, scheduler="lazy")
    for disk in rig.disks.values():
        disk.open()

    async def ask():
        return await rig.ask(1, SUM_SPAN, 3 * SUM_SPAN, keep=True)

    for _ in range(20):
        assert asyncio.run(ask())[1] == rig.films["t", 1][SUM_SPAN : 3 * SUM_SPAN]
