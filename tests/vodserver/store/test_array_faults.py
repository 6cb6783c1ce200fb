"""The disks as one when they fail, hang, come and go."""

import asyncio

import pytest

from tests.vodserver.store.gated import ALL, MIDDLE, SECONDS, ticks
from vodserver.errors import DiskError
from vodserver.scheduling import SCHEDULERS
from vodserver.store.sums import SUM_SPAN

# --- faults


@pytest.mark.parametrize("paged", [True, False])
async def test_a_fault_in_what_is_read_ahead_sends_only_those_elsewhere_who_need_it(make, paged):
    rig = make(disks=2, paged=paged)
    bad, good = rig.disks[0], rig.disks[1]
    first = rig.ask(keep=not paged)
    await bad.entered()
    last = rig.ask(begin=SUM_SPAN - 1, stop=ALL, keep=True) if not paged else rig.ask(begin=ALL - 1)
    bad.let()
    await first
    await bad.entered()
    bad.faults.add(("t", 0))
    bad.open()
    await good.entered()
    good.open()

    number, data = await last
    assert number == 1
    if not paged:
        assert data == rig.films["t", 0]
    assert (await first)[0] == 0
    assert rig.faults == [(("t", 0), 0, "I/O error")]
    await rig.settle()


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
async def test_a_fault_of_all_replicas_is_the_last_one_s(make, scheduler):
    rig = make(disks=3, scheduler=scheduler)
    for number, disk in rig.disks.items():
        disk.faults.add(("t", 0))
        disk.open()
        assert rig.array.disk(number) is disk
    tasks = [rig.ask() for _ in range(3)]

    for task in tasks:
        with pytest.raises(DiskError, match="I/O error"):
            await task
    await rig.settle()
    assert sorted(disk for _, disk, _ in rig.faults) == [0, 1, 2]
    assert [s.failed_reads for s in rig.array.statistics().values()] == [1, 1, 1]


async def test_wrong_bytes_are_a_fault(make):
    rig = make(disks=2)
    wrong = bytearray(rig.films["t", 0])
    wrong[MIDDLE] ^= 1
    rig.disks[0].films = {**rig.films, ("t", 0): bytes(wrong)}
    last = rig.ask(begin=0, stop=ALL, keep=True)
    await rig.settle()

    assert await last == (1, rig.films["t", 0])
    assert rig.faults == [(("t", 0), 0, "its checksum does not match")]


async def test_a_disk_that_raises_what_no_disk_should_is_passed_over(make):
    rig = make(disks=2)
    rig.disks[0].films = {}
    assert await asyncio.gather(rig.ask(), rig.settle()) == [(1, None), None]
    assert "cannot read from" in rig.faults[0][2]
    assert rig.array._slots[0].thread.is_alive()


# --- stalls


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
async def test_what_waits_for_a_disk_that_hangs_goes_to_the_other(make, scheduler):
    rig = make(disks=2, scheduler=scheduler)
    tasks = [rig.ask(number) for number in (0, 1)]
    both = [rig.disks[n] for n in (0, 1)]
    await asyncio.gather(*(disk.entered() for disk in both))
    tasks.append(rig.ask(2))
    await ticks()
    rig.stall(0)
    both[1].open()

    assert [await task for task in tasks] == [(1, None)] * 3
    assert rig.array.load(0) is None
    assert rig.array.statistics()[0].stalled
    assert rig.array.statistics()[0].expected_delay_seconds >= 0
    await rig.settle()
    assert not rig.array.statistics()[0].stalled
    assert rig.faults == []


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
@pytest.mark.parametrize("first_back", [0, 1])
async def test_when_both_hang_the_first_that_comes_to_serves_all(make, scheduler, first_back):
    rig = make(disks=2, scheduler=scheduler)
    asked = [(number, 0, 1) for number in (0, 1, 2)]
    tasks = [rig.ask(*each, keep=True) for each in asked]
    for disk in rig.disks.values():
        await disk.entered()
    rig.stall(0)
    rig.stall(1)
    tasks.append(rig.ask(2, keep=True))
    await ticks()
    rig.disks[first_back].open()

    for each, task in zip([*asked, (2, 0, 1)], tasks, strict=True):
        assert await task == (first_back, rig.right(rig.wanted(*each)))
    assert rig.array.statistics()[1 - first_back].stalled
    await rig.settle()


async def test_a_fault_of_the_one_leaves_a_disk_that_hangs_its_chance(make):
    rig = make(disks=2)
    asking = rig.ask()
    await rig.disks[0].entered()
    rig.stall(0)
    rig.disks[1].faults.add(("t", 0))
    rig.disks[1].open()
    await rig.disks[1].entered()
    while not rig.faults:  # noqa: ASYNC110 - a thread sets no event of ours
        await asyncio.sleep(0)
    await ticks()
    assert not asking.done()
    rig.disks[0].open()

    assert await asking == (0, None)
    await rig.settle()


async def test_a_read_that_goes_on_slowly_does_not_hang(make):
    rig = make(disks=1)
    rig.ask()
    await rig.disks[0].entered()
    slot = rig.array._slots[0]
    read = slot.running
    slot.running.heard -= 999.0
    rig.array._watch(slot, read)

    assert not rig.array.statistics()[0].stalled
    await rig.settle()


async def test_nobody_waits_for_ever(make):
    rig = make(disks=1, read_timeout_seconds=0.01)
    with pytest.raises(DiskError, match=r"no disk answered within 0\.01 s"):
        await rig.ask()
    await rig.settle()


# --- disks that come and go


async def test_no_disk_at_all(make):
    rig = make(disks=1)
    rig.array.detach(0)
    rig.array.detach(0)
    with pytest.raises(DiskError, match="none of its disks is there"):
        await rig.ask()
    assert rig.array.numbers == ()
    assert rig.array.disk(0) is rig.array.load(0) is None
    rig.array.note_resident(0, 1)


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
async def test_a_disk_that_goes_fails_only_those_who_have_no_other(make, scheduler):
    rig = make(disks=2, scheduler=scheduler)
    running = rig.ask(1, disks=(0,))
    await rig.disks[0].entered()
    only, either = rig.ask(disks=(0,)), rig.ask(2, disks=(0, 1))
    await ticks()
    rig.array.detach(0)
    with pytest.raises(DiskError, match="disk 0 is not there any more"):
        await only
    rig.disks[1].open()
    assert await either == (1, None)

    rig.disks[0].let()  # what it is just reading still comes, and is right
    assert await running == (0, None)
    assert rig.learned == [(("t", 2), 1, 0, 5)], "but it is no disk of ours any more"
    rig.disks[0].open()
    await rig.settle()
    assert rig.faults == []


async def test_who_joined_a_read_of_fewer_disks_keeps_its_own(make):
    """A read of the disk that goes was good enough while the other one hung."""
    rig = make(disks=2)
    hung = rig.ask(1, disks=(1,))
    await rig.disks[1].entered()
    busy = rig.ask(2, disks=(0,))
    await rig.disks[0].entered()
    rig.stall(1)
    narrow = rig.ask(disks=(0,))
    wide = rig.ask(disks=(0, 1))
    await ticks()
    assert len(rig.array._reads) == 3
    rig.array.detach(0)
    rig.disks[0].open()
    rig.disks[1].open()

    with pytest.raises(DiskError):
        await narrow
    assert await wide == (1, None)
    assert await hung == (1, None)
    assert await busy == (0, None)
    await rig.settle()


async def test_the_last_disk_that_hangs_takes_its_waiters_with_it(make):
    rig = make(disks=1)
    first = rig.ask(1)
    await rig.disks[0].entered()
    rig.stall(0)
    parked = rig.ask()
    await ticks()
    rig.array.detach(0)

    with pytest.raises(DiskError, match="not there any more"):
        await parked
    rig.disks[0].open()
    assert await first == (0, None)
    await rig.settle()


async def test_a_disk_that_comes_serves_what_was_parked(make):
    rig = make(disks=2)
    rig.array.detach(1)
    hung = rig.ask(1)
    await rig.disks[0].entered()
    rig.stall(0)
    parked = rig.ask()
    await ticks()
    rig.attach(1)
    rig.disks[1].open()

    assert await parked == await hung == (1, None)
    await rig.settle()


@pytest.mark.parametrize("state", ["idle", "running", "queued", "stalled"])
async def test_a_disk_is_replaced_in_any_state(make, state):
    """The old one's thread may be in a read; nothing of it touches the new one."""
    rig = make(disks=1)
    old = rig.disks[0]
    tasks = []
    if state != "idle":
        tasks.append(rig.ask(1))
        await old.entered()
    slot = rig.array._slots[0]
    if state == "queued":
        tasks.append(rig.ask())
        await ticks()
    if state == "stalled":
        rig.stall(0)
    stale = slot.running
    rig.attach(0)
    if stale is not None:
        stale.heard -= 2000.0
        rig.array._watch(slot, stale)  # the old disk's watchdog has nothing to say any more
    new = rig.ask(2)
    await rig.disks[0].entered()
    assert not rig.array.statistics()[0].stalled
    rig.disks[0].open()
    assert await new == (0, None)
    old.open()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert outcomes[:1] in ([], [(0, None)])
    assert all(isinstance(each, DiskError) or each == (0, None) for each in outcomes)
    assert await rig.ask(1) == (0, None)
    await rig.settle()
    assert rig.faults == []
    old_thread = slot.thread
    await asyncio.to_thread(old_thread.join, SECONDS)
    assert not old_thread.is_alive()
    assert old.closed == 1


async def test_nobody_joins_a_read_of_a_disk_that_was_replaced(make):
    rig = make(disks=1)
    old = rig.disks[0]
    first = rig.ask()
    await old.entered()
    rig.attach(0)
    rig.disks[0].open()

    assert await rig.ask(begin=MIDDLE, stop=MIDDLE + 1) == (0, None)
    old.open()
    assert await first == (0, None)
    await rig.settle()
