"""The disks as one: anything, in any order, and everybody has one right answer."""

import asyncio
import gc

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.vodserver.store.gated import ALL, SECONDS, GatedDisk, Rig, ticks
from vodserver.errors import DiskError
from vodserver.scheduling import SCHEDULERS

# --- anything, in any order


class Machine(RuleBasedStateMachine):
    """Waiters, disks and loops come and go; disks fault, hang and come to."""

    folder = None
    scheduler = "lazy"
    paged = True

    def __init__(self):
        super().__init__()
        self.rig = Rig(self.folder, disks=3, scheduler=self.scheduler, paged=self.paged)
        self.all_disks = list(self.rig.disks.values())
        self.loop = asyncio.new_event_loop()
        self.asked = []

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    async def quiet(self):
        """Until each disk waits at its gate, or has nothing to do."""
        async with asyncio.timeout(SECONDS):
            while any(  # noqa: ASYNC110 - threads set no event of ours
                slot.running is not None
                and slot.running.loop is self.loop
                and not slot.disk.at_gate
                for slot in self.rig.array._slots.values()
            ):
                await asyncio.sleep(0)
        await ticks(6)

    @rule(
        extent=st.integers(0, 2),
        ends=st.tuples(st.integers(0, ALL), st.integers(0, ALL)),
        disks=st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
        flags=st.sampled_from(["", "keep", "background", "direct", "keep background"]),
    )
    def ask(self, extent, ends, disks, flags):
        size = len(self.rig.films["t", extent])
        begin = min(ends) % size
        stop = min(max(begin + 1, *ends), size)
        options = dict.fromkeys(flags.split(), True)

        async def start():
            task = self.rig.ask(extent, begin, stop, disks=tuple(disks), **options)
            await self.quiet()
            return task

        wanted = self.rig.wanted(extent, begin, stop, **options)
        self.asked.append((self.run(start()), wanted, tuple(disks)))

    @rule(number=st.integers(0, 2))
    def let_a_disk_go_on(self, number):
        disk = self.rig.disks[number]
        if disk.at_gate:
            disk.let()
            self.run(self.quiet())

    @rule(number=st.integers(0, 2), extent=st.integers(0, 2))
    def break_or_mend(self, number, extent):
        self.rig.disks[number].faults ^= {("t", extent)}

    @rule(number=st.integers(0, 2))
    def hang(self, number):
        slot = self.rig.array._slots.get(number)
        if slot is not None and slot.running is not None and not slot.stalled:

            async def stall():
                self.rig.stall(number)
                await self.quiet()

            self.run(stall())

    @rule(number=st.integers(0, 30))
    def give_up(self, number):
        # How many wait may depend on a thread; what is drawn must not.
        waiting = [task for task, *_ in self.asked if not task.done()]
        if waiting:
            waiting[number % len(waiting)].cancel()
            self.run(self.quiet())

    @rule(number=st.integers(0, 2))
    def go(self, number):
        async def detach():
            self.rig.array.detach(number)
            await self.quiet()

        self.run(detach())

    @rule(number=st.integers(0, 2))
    def come(self, number):
        async def attach():
            self.rig.disks[number].open()
            self.rig.attach(number)
            await self.quiet()

        self.run(attach())
        self.all_disks.append(self.rig.disks[number])

    @rule()
    def end_the_loop(self):
        async def end():
            for task, *_ in self.asked:
                task.cancel()
            await asyncio.gather(*(task for task, *_ in self.asked), return_exceptions=True)

        self.run(end())
        self.check_answers()
        self.asked.clear()
        self.loop.close()
        self.loop = asyncio.new_event_loop()

    def check_answers(self):
        for task, wanted, disks in self.asked:
            if not task.done() or task.cancelled():
                continue
            if isinstance(task.exception(), DiskError):
                continue
            number, data = task.result()
            assert number in disks
            assert (data is not None) == wanted.keep
            assert data is None or data == self.rig.right(wanted)

    @invariant()
    def every_answer_is_right(self):
        self.check_answers()

    @invariant()
    def one_read_per_disk_and_no_number_below_zero(self):
        assert not any(disk.overlapped for disk in self.all_disks)
        for statistics in self.rig.array.statistics().values():
            for name in statistics.__slots__:
                assert getattr(statistics, name) >= 0, name

    @invariant()
    def nobody_waits_twice_or_is_forgotten(self):
        # A thread may answer at any time; whoever was answered goes on with the loop's next turns.
        for _ in range(50):
            waiting = [w for read in self.rig.array._reads.values() for w in read.waiters]
            live = [task for task, *_ in self.asked if not task.done()]
            if sum(not waiter.done.done() for waiter in waiting) == len(live):
                break
            self.run(ticks())
        assert len(set(map(id, waiting))) == len(waiting)
        assert sum(not waiter.done.done() for waiter in waiting) == len(live)

    def teardown(self):
        async def finish():
            for disk in self.all_disks:
                disk.open()
            await asyncio.gather(*(task for task, *_ in self.asked), return_exceptions=True)
            await self.rig.settle()

        self.run(finish())
        self.check_answers()
        self.rig.close()
        self.run(ticks())
        self.loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("paged", [True, False])
@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
def test_in_any_order_every_waiter_has_one_right_answer(tmp_path, scheduler, paged, full):
    kind = type("Kind", (Machine,), {"folder": tmp_path, "scheduler": scheduler, "paged": paged})
    # Python 3.11.2 (Debian 12) raises a SystemError when the collector runs inside `ast`, which
    # hypothesis uses to read the rules.
    gc.collect()
    gc.disable()
    try:
        run_state_machine_as_test(
            kind,
            settings=hypothesis_settings(
                max_examples=150 if full else 25, stateful_step_count=30, deadline=None
            ),
        )
    finally:
        gc.enable()


def test_the_fake_keeps_one_read_at_a_time(tmp_path):
    disk = GatedDisk(tmp_path, {("t", 0): b"abc"}, is_open=True)
    assert disk.read(("t", 0), 1, 2) == b"bc"
    with disk._inside:
        disk._inside.release()
        assert disk.read(("t", 0), 0, 1) == b"a"
        disk._inside.acquire()
