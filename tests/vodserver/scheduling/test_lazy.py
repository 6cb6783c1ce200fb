"""The replica is chosen when a disk becomes free."""

import pytest

from tests.conformance.check_scheduler import check_scheduler
from tests.vodserver.scheduling.taught import SIZE, teach
from vodserver.scheduling import SCHEDULERS, Lazy, ReadRequest


@pytest.mark.slow
def test_conforms():
    check_scheduler(lambda disks: SCHEDULERS.create("lazy", disks=disks))


@pytest.mark.slow
def test_the_plain_variant_conforms_and_takes_the_oldest():
    check_scheduler(
        lambda disks: SCHEDULERS.create("lazy", disks=disks, plain=True), oldest_first=True
    )


def test_whichever_disk_is_free_takes_the_oldest_that_it_holds():
    scheduler = Lazy(disks=(0, 1, 2))
    for number, disks in enumerate([(0, 1), (1, 2), (0, 2), (0, 1)]):
        scheduler.submit(ReadRequest(number, disks, SIZE), 0.0)

    assert scheduler.next(2, 0.0).id == 1
    assert scheduler.next(1, 0.0).id == 0
    assert scheduler.next(0, 0.0).id == 2
    scheduler.finish(1, 0.1)
    assert scheduler.next(1, 0.1).id == 3


def test_of_two_that_wait_as_long_the_one_whose_other_disk_is_busier_is_taken():
    scheduler = teach(Lazy, {0: 0.1, 1: 0.1, 2: 0.1})
    for number in range(100, 104):  # disk 1 has three to do when it is done with the first
        scheduler.submit(ReadRequest(number, (1,), SIZE), 10.0)
    assert scheduler.next(1, 10.0).id == 100
    scheduler.submit(ReadRequest(110, (0, 2), SIZE), 10.0)
    scheduler.submit(ReadRequest(111, (0, 1), SIZE), 10.0)

    assert scheduler.next(0, 10.0).id == 111
    assert scheduler.next(2, 10.0).id == 110


def test_waiting_long_counts_for_more_than_a_busy_disk():
    """Four reads of 0.1 s are the most that a busy disk counts for."""
    scheduler = teach(Lazy, {0: 0.1, 1: 0.1, 2: 0.1})
    for number in range(200, 240):
        scheduler.submit(ReadRequest(number, (1,), SIZE), 10.0)
    scheduler.submit(ReadRequest(110, (0, 2), SIZE), 10.0)
    scheduler.submit(ReadRequest(111, (0, 1), SIZE), 10.5)

    assert scheduler.next(0, 10.5).id == 110


def test_what_only_this_disk_can_serve_is_not_overtaken_by_a_younger_one():
    scheduler = teach(Lazy, {0: 0.1, 1: 0.1})
    for number in range(100, 104):
        scheduler.submit(ReadRequest(number, (1,), SIZE), 10.0)
    scheduler.submit(ReadRequest(110, (0,), SIZE), 10.0)
    scheduler.submit(ReadRequest(111, (0, 1), SIZE), 10.0)

    assert scheduler.next(0, 10.0).id == 110


def test_no_request_waits_behind_a_hanging_disk():
    scheduler = Lazy(disks=(0, 1))
    scheduler.submit(ReadRequest(0, (0, 1), SIZE), 0.0)
    assert scheduler.next(0, 0.0).id == 0
    for number in range(1, 4):
        scheduler.submit(ReadRequest(number, (0, 1), SIZE), 0.0)
        assert scheduler.next(1, float(number)).id == number
        scheduler.finish(1, number + 0.5)


def test_a_slow_disk_leaves_a_request_to_one_that_is_done_much_sooner():
    """Disk 0 would take a second; disk 1 has 0.05 s to go and then takes 0.1 s."""
    scheduler = teach(Lazy, {0: 1.0, 1: 0.1})
    scheduler.submit(ReadRequest(100, (1,), SIZE), 10.0)
    assert scheduler.next(1, 10.0).id == 100
    scheduler.submit(ReadRequest(101, (0, 1), SIZE), 10.05)

    assert scheduler.next(0, 10.05) is None
    assert scheduler.wake(0, 10.05) == pytest.approx(11.05, rel=0.01)
    scheduler.finish(1, 10.1)
    assert scheduler.next(1, 10.1).id == 101
    assert scheduler.wake(0, 10.1) is None


def read_once(scheduler, number, disk, now, seconds):
    scheduler.submit(ReadRequest(number, (disk,), SIZE), now)
    assert scheduler.next(disk, now).id == number
    scheduler.finish(disk, now + seconds)


def test_a_disk_that_was_never_tried_is_tried():
    """The others are a hundred times faster than a disk is taken for at first: is this one?"""
    scheduler = Lazy(disks=(0, 1))
    for number in range(10):
        read_once(scheduler, number, 1, number * 1.0, 0.0003)
    scheduler.submit(ReadRequest(100, (0, 1), SIZE), 10.0)

    assert scheduler.next(0, 10.0).id == 100


def test_a_disk_that_was_slow_is_tried_again_after_a_while():
    scheduler = teach(Lazy, {0: 1.0, 1: 0.01})
    for number, now, takes in ((100, 10.0, False), (101, 28.0, False), (102, 32.0, True)):
        read_once(scheduler, 1000 + number, 1, now - 1.0, 0.01)  # the fast one goes on
        scheduler.submit(ReadRequest(number, (0, 1), SIZE), now)
        assert (scheduler.next(0, now) is not None) is takes
        scheduler.cancel(number)


def test_the_plain_variant_takes_it():
    scheduler = teach(Lazy, {0: 1.0, 1: 0.1}, plain=True)
    scheduler.submit(ReadRequest(100, (1,), SIZE), 10.0)
    assert scheduler.next(1, 10.0).id == 100
    scheduler.submit(ReadRequest(101, (0, 1), SIZE), 10.05)

    assert scheduler.next(0, 10.05).id == 101
    assert scheduler.wake(0, 10.05) is None


def test_it_leaves_no_more_than_the_fast_disk_can_do_sooner():
    """The fast disk does seven in the time of one here: the eighth and so on are taken."""
    scheduler = teach(Lazy, {0: 1.0, 1: 0.3})
    for number in range(100, 108):
        scheduler.submit(ReadRequest(number, (0, 1), SIZE), 10.0)

    assert scheduler.next(0, 10.0).id == 102


def test_a_request_is_left_no_longer_than_it_would_have_taken_here():
    """The fast disk hangs: the slow one takes the request after its own second, at wake's time."""
    scheduler = teach(Lazy, {0: 1.0, 1: 0.1})
    scheduler.submit(ReadRequest(100, (1,), SIZE), 10.0)
    scheduler.next(1, 10.0)
    scheduler.submit(ReadRequest(101, (0, 1), SIZE), 10.0)
    assert scheduler.next(0, 10.0) is None

    due = scheduler.wake(0, 10.0)

    assert due == pytest.approx(11.0, rel=0.01)
    assert scheduler.next(0, due).id == 101


def test_an_overdue_disk_is_waited_for_no_more():
    """It should have been done 0.9 s ago, so it is not expected to be done soon."""
    scheduler = teach(Lazy, {0: 1.0, 1: 0.1})
    scheduler.submit(ReadRequest(100, (1,), SIZE), 9.0)
    scheduler.next(1, 9.0)
    scheduler.submit(ReadRequest(101, (0, 1), SIZE), 10.0)

    assert scheduler.next(0, 10.0).id == 101


def test_what_only_a_slow_disk_holds_is_taken_at_once():
    scheduler = teach(Lazy, {0: 1.0, 1: 0.1})
    scheduler.submit(ReadRequest(100, (0, 1), SIZE), 10.0)
    scheduler.submit(ReadRequest(101, (0,), SIZE), 10.0)

    assert scheduler.next(0, 10.0).id == 101


def test_a_returned_disk_serves_what_waits_already():
    scheduler = Lazy(disks=(0, 1))
    scheduler.withdraw(1)
    for number in range(3):
        scheduler.submit(ReadRequest(number, (0, 1), SIZE), 0.0)
    scheduler.join(1)

    assert scheduler.next(1, 0.0).id == 0
    assert scheduler.load(0, 0.0).waiting == scheduler.load(1, 0.0).waiting == 2


def test_the_expected_delay_counts_what_other_disks_will_take():
    """Ten requests of 0.1 s wait for two equal disks: five are served here before a new one."""
    scheduler = teach(Lazy, {0: 0.1, 1: 0.1})
    for number in range(10):
        scheduler.submit(ReadRequest(100 + number, (0, 1), SIZE), 10.0)

    assert scheduler.load(0, 10.0).expected_delay == pytest.approx(0.6, rel=0.02)
