"""What every replica scheduler must do; run by the test of each."""

import gc
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from vodserver.scheduling import ReadRequest, Scheduler

__all__ = ["Make", "check_scheduler", "drain"]

Make = Callable[[Iterable[int]], Scheduler]

DISKS = 5
ENDLESS = 10_000


def check_scheduler(make: Make, *, oldest_first: bool = False, examples: int = 40) -> None:
    """Fail where a policy does not keep the promises of `Scheduler`.

    Args:
        make: makes one over these disks.
        oldest_first: whether a disk takes the oldest request of all that it holds; else it may
            leave one that another disk holds as well.
        examples: how many runs hypothesis makes.
    """
    _check_refusals(make)
    _check_background_waits(make)
    _check_it_is_repeatable(make)
    _check_nobody_starves(make)
    # Python 3.11.2 (Debian 12) raises a SystemError when the collector runs inside `ast`, which
    # hypothesis uses to read the rules.
    gc.collect()
    gc.disable()
    try:
        run_state_machine_as_test(
            partial(_Disks, make, oldest_first=oldest_first),
            settings=hypothesis_settings(
                max_examples=examples, stateful_step_count=40, deadline=None
            ),
        )
    finally:
        gc.enable()


def drain(scheduler: Scheduler, disks: Iterable[int], now: float, seconds: float) -> list[int]:
    """Let idle disks serve all that waits, each read taking `seconds`; the ids as served."""
    served = []
    disks = list(disks)
    for _ in range(ENDLESS):
        taken = [request for disk in disks if (request := scheduler.next(disk, now)) is not None]
        served += [request.id for request in taken]
        if not taken and not any(scheduler.load(disk, now).waiting for disk in disks):
            return served
        now += seconds
        for disk in disks:
            scheduler.finish(disk, now)
    raise AssertionError("requests wait and no disk takes them")


def _check_refusals(make: Make) -> None:
    scheduler = make((0, 1))
    with pytest.raises(ValueError, match="none of the disks"):
        scheduler.submit(ReadRequest(1, (7,), 10), 0.0)
    scheduler.submit(ReadRequest(1, (7, 1), 10), 0.0)
    with pytest.raises(ValueError, match="waits already"):
        scheduler.submit(ReadRequest(1, (0,), 10), 0.0)
    assert scheduler.next(0, 0.0) is None
    assert scheduler.next(7, 0.0) is None, "a disk that is not there"
    assert scheduler.next(1, 0.0) == ReadRequest(1, (7, 1), 10)
    with pytest.raises(ValueError, match="reading"):
        scheduler.next(1, 0.0)
    with pytest.raises(KeyError):
        scheduler.load(7, 0.0)
    assert not scheduler.cancel(1), "an outstanding read cannot be cancelled"
    scheduler.finish(1, 1.0)
    scheduler.finish(1, 1.0)
    scheduler.finish(7, 1.0)
    assert not scheduler.load(1, 1.0).outstanding


def _check_background_waits(make: Make) -> None:
    """A scrub that came first goes last, on every disk that it could use."""
    scheduler = make((0, 1))
    scheduler.submit(ReadRequest(1, (0, 1), 10, background=True), 0.0)
    for number in range(2, 8):
        scheduler.submit(ReadRequest(number, (number % 2,), 10), 0.0)
    served = drain(scheduler, (0, 1), 0.0, 0.1)
    assert served[-1] == 1
    assert sorted(served) == list(range(1, 8))


def _check_it_is_repeatable(make: Make) -> None:
    def run() -> list[int]:
        scheduler = make(range(4))
        for number in range(200):
            disks = (number * 7 % 4, (number * 7 + 1 + number % 3) % 4)
            scheduler.submit(ReadRequest(number, disks, 1000 + number), number * 0.01)
        return drain(scheduler, range(4), 2.0, 0.05)

    assert run() == run(), "chance or a clock that was not handed in"


def _check_nobody_starves(make: Make) -> None:
    """A request is served although younger ones keep coming, on a disk learned to be slow."""
    scheduler = make((0, 1))
    for number in range(40):  # disk 0 takes a second for what disk 1 does in 10 ms
        disk = number % 2
        scheduler.submit(ReadRequest(number, (disk,), 1000), number * 2.0)
        scheduler.next(disk, number * 2.0)
        scheduler.finish(disk, number * 2.0 + (0.01 if disk else 1.0))
    now, number, ends = 100.0, 1000, [None, None]
    scheduler.submit(ReadRequest(999, (0, 1), 1000), now)
    for _ in range(800):
        scheduler.submit(ReadRequest(number, (0, 1), 1000), now)
        number += 1
        for disk in (0, 1):
            if ends[disk] is not None and ends[disk] <= now:
                scheduler.finish(disk, now)
                ends[disk] = None
            if ends[disk] is None and (request := scheduler.next(disk, now)) is not None:
                ends[disk] = now + (0.01 if disk else 1.0)
                if request.id == 999:
                    return
        now += 0.005
    raise AssertionError("the oldest request is never served")


class _Disks(RuleBasedStateMachine):
    """Five disks that come and go, and a plain account of every request beside the scheduler."""

    def __init__(self, make: Make, *, oldest_first: bool) -> None:
        super().__init__()
        self.scheduler = make(range(3))
        self.oldest_first = oldest_first
        self.there = {0, 1, 2}
        self.now = 0.0
        self.number = 0
        self.waiting: dict[int, ReadRequest] = {}
        self.outstanding: dict[int, tuple[ReadRequest, float]] = {}
        self.done: set[int] = set()

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.02, 0.5, 30.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(
        disks=st.lists(st.integers(0, DISKS - 1), min_size=1, max_size=3, unique=True),
        size=st.sampled_from([1, 65536, 4_000_000]),
        background=st.booleans(),
    )
    def submit(self, disks, size, background):
        request = ReadRequest(self.number, tuple(disks), size, background)
        if not self.there & set(disks):
            with pytest.raises(ValueError, match="none of the disks"):
                self.scheduler.submit(request, self.now)
            return
        self.number += 1
        self.scheduler.submit(request, self.now)
        self.waiting[request.id] = request

    @precondition(lambda self: self.there - set(self.outstanding))
    @rule(data=st.data())
    def serve(self, data):
        disk = data.draw(st.sampled_from(sorted(self.there - set(self.outstanding))))
        before = self.scheduler.load(disk, self.now)
        request = self.scheduler.next(disk, self.now)
        if request is None:
            here = [r for r in self.waiting.values() if disk in r.disks]
            foreground = [r for r in here if not r.background] or here
            own = [r for r in foreground if self.there & set(r.disks) == {disk}]
            assert not own, "an idle disk does not serve what only it can serve"
            return
        assert self.waiting.pop(request.id) is request, "served what does not wait"
        assert disk in request.disks
        assert before.waiting >= 1
        self.outstanding[disk] = (request, self.now)
        self._check_turn(disk, request)

    def _check_turn(self, disk, request):
        """Nobody who was bound to be served here was overtaken."""
        for other in self.waiting.values():
            if disk not in other.disks:
                continue
            only_here = self.oldest_first or self.there & set(other.disks) == {disk}
            if only_here and not other.background:
                assert not request.background, "background overtook"
            if only_here and other.background == request.background:
                overtaken = other.id < request.id
                assert not overtaken, f"{request.id} overtook {other.id} on disk {disk}"

    @precondition(lambda self: self.outstanding)
    @rule(data=st.data(), learn=st.booleans())
    def finish(self, data, learn):
        disk = data.draw(st.sampled_from(sorted(self.outstanding)))
        request, _ = self.outstanding.pop(disk)
        self.scheduler.finish(disk, self.now, learn=learn)
        self.done.add(request.id)

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def cancel(self, data):
        number = data.draw(st.integers(0, self.number))
        was_waiting = number in self.waiting
        assert self.scheduler.cancel(number) is was_waiting
        self.waiting.pop(number, None)

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def withdraw(self, data):
        disk = data.draw(st.sampled_from(sorted(self.there)))
        self.there.discard(disk)
        self.outstanding.pop(disk, None)
        lost = [r for r in self.waiting.values() if not self.there & set(r.disks)]
        assert self.scheduler.withdraw(disk) == lost
        for request in lost:
            del self.waiting[request.id]
        assert self.scheduler.withdraw(disk) == []
        assert self.scheduler.next(disk, self.now) is None

    @precondition(lambda self: len(self.there) < DISKS)
    @rule(data=st.data())
    def join(self, data):
        disk = data.draw(st.sampled_from(sorted(set(range(DISKS)) - self.there)))
        self.scheduler.join(disk)
        self.there.add(disk)

    @invariant()
    def loads_agree_with_the_account(self):
        counted = 0
        for disk in self.there:
            load = self.scheduler.load(disk, self.now)
            could = [r for r in self.waiting.values() if disk in r.disks]
            alone = [r for r in could if self.there & set(r.disks) == {disk}]
            assert len(alone) <= load.waiting <= len(could)
            assert sum(r.size for r in alone) <= load.waiting_bytes <= sum(r.size for r in could)
            assert load.outstanding is (disk in self.outstanding)
            since = self.outstanding[disk][1] if load.outstanding else self.now
            assert load.busy_seconds == self.now - since
            assert load.expected_delay > 0
            assert load.rate > 0
            assert load.access_seconds >= 0
            counted += load.waiting
        assert counted >= len(self.waiting), "a request waits nowhere"

    def teardown(self):
        """All that waits is served in the end, once, by disks that hold it."""
        for disk in self.there:
            self.scheduler.finish(disk, self.now)
        served = drain(self.scheduler, sorted(self.there), self.now, 0.05)
        assert sorted(served) == sorted(self.waiting)
