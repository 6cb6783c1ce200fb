"""The replica is chosen late, and for all who wait at once."""

import pytest

from tests.conformance.check_scheduler import check_scheduler
from tests.vodserver.scheduling.taught import SIZE, teach
from vodserver.scheduling import SCHEDULERS, Lazy, Matched, ReadRequest


@pytest.mark.slow
def test_conforms():
    check_scheduler(lambda disks: SCHEDULERS.create("matched", disks=disks))


def busy(scheduler: Lazy, disk: int, reads: int = 1) -> None:
    """A disk reads, and has so many to read that no other disk has, the one it is at included."""
    for number in range(reads):
        scheduler.submit(ReadRequest(1000 * (disk + 1) + number, (disk,), SIZE), 10.0)
    scheduler.next(disk, 10.0)


def ask(scheduler: Lazy, *requests: tuple[int, tuple[int, ...]], at: float = 10.0) -> None:
    for number, disks in requests:
        scheduler.submit(ReadRequest(number, disks, SIZE), at)


def test_of_two_that_wait_as_long_the_one_whose_other_disk_is_busier_is_taken():
    scheduler = teach(Matched, {0: 0.1, 1: 0.1, 2: 0.1})
    busy(scheduler, 1, reads=3)
    busy(scheduler, 2)
    ask(scheduler, (110, (0, 2)), (111, (0, 1)))

    assert scheduler.next(0, 10.05).id == 111


@pytest.mark.parametrize(("make", "taken"), [(Matched, 111), (Lazy, 110)])
def test_it_sees_past_the_other_disk(make, taken):
    """More waits for disk 1 than for disk 2; but the fast disk 3 will have taken that, while what
    waits for disk 2 can go nowhere else."""
    scheduler = teach(make, {0: 0.1, 1: 0.1, 2: 0.1, 3: 0.04, 4: 0.1})
    busy(scheduler, 1)
    busy(scheduler, 2)
    busy(scheduler, 4, reads=3)
    ask(scheduler, (100, (2, 4)), (101, (1, 3)), (102, (1, 3)), (110, (0, 1)), (111, (0, 2)))

    assert scheduler.next(0, 10.05).id == taken


def test_nobody_is_overtaken_by_what_came_four_reads_later():
    scheduler = teach(Matched, {0: 0.1, 1: 0.1, 2: 0.1})
    busy(scheduler, 1, reads=9)
    busy(scheduler, 2)
    ask(scheduler, (110, (0, 2)))
    ask(scheduler, (111, (0, 1)), at=10.41)

    assert scheduler.next(0, 10.41).id == 110


def test_those_of_the_same_disks_are_served_in_turn():
    scheduler = teach(Matched, {0: 0.1, 1: 0.1})
    busy(scheduler, 1, reads=3)
    ask(scheduler, (110, (0, 1)), (111, (1, 0)), (112, (0, 1)))

    assert scheduler.next(0, 10.0).id == 110


def test_what_only_this_disk_can_serve_is_not_overtaken_by_a_younger_one():
    scheduler = teach(Matched, {0: 0.1, 1: 0.1})
    busy(scheduler, 1, reads=4)
    ask(scheduler, (110, (0,)), (111, (0, 1)))

    assert scheduler.next(0, 10.0).id == 110


def test_a_request_is_left_to_a_faster_disk_for_as_long_as_under_lazy():
    scheduler = teach(Matched, {0: 1.0, 1: 0.1})
    busy(scheduler, 1)
    ask(scheduler, (101, (0, 1)))

    assert scheduler.next(0, 10.0) is None
    due = scheduler.wake(0, 10.0)
    assert due == pytest.approx(11.0, rel=0.01)
    assert scheduler.next(0, due).id == 101


def test_a_disk_that_nothing_was_planned_for_takes_what_it_may():
    """The slow disk's two are planned for fast ones, but each for longer than it may be left."""
    scheduler = teach(Matched, {0: 0.3, 1: 0.1, 2: 0.1})
    busy(scheduler, 1, reads=3)
    busy(scheduler, 2, reads=3)
    ask(scheduler, (110, (0, 1)), (111, (0, 2)))

    assert scheduler.next(0, 10.0).id == 110
