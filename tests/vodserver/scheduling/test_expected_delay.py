"""The replica that is expected to be there first."""

import pytest

from tests.conformance.check_scheduler import check_scheduler
from tests.vodserver.scheduling.taught import SIZE, teach
from vodserver.scheduling import SCHEDULERS, ExpectedDelay, ReadRequest


@pytest.mark.slow
def test_conforms():
    check_scheduler(lambda disks: SCHEDULERS.create("expected-delay", disks=disks))


def test_a_disk_gets_work_as_it_is_fast():
    """Disk 1 takes three times as long: of 12 requests that both hold, it gets three."""
    scheduler = teach(ExpectedDelay, {0: 0.1, 1: 0.3})
    for number in range(12):
        scheduler.submit(ReadRequest(100 + number, (0, 1), SIZE), 10.0)

    assert [scheduler.load(disk, 10.0).waiting for disk in (0, 1)] == [9, 3]


def test_the_rest_of_the_read_under_way_counts():
    """Both disks read: the one that began earlier is free earlier."""
    scheduler = teach(ExpectedDelay, {0: 0.1, 1: 0.1})
    for disk, began in ((1, 9.9), (0, 9.95)):
        scheduler.submit(ReadRequest(100 + disk, (disk,), SIZE), began)
        assert scheduler.next(disk, began) is not None

    scheduler.submit(ReadRequest(200, (0, 1), SIZE), 9.96)

    assert scheduler.load(1, 9.96).waiting == 1


def test_a_disk_that_hangs_gets_nothing_new():
    """It should have answered two seconds ago: three requests before the other are no reason."""
    scheduler = teach(ExpectedDelay, {0: 0.1, 1: 0.1})
    scheduler.submit(ReadRequest(100, (0,), SIZE), 10.0)
    assert scheduler.next(0, 10.0) is not None
    for number in range(4):
        scheduler.submit(ReadRequest(200 + number, (0, 1), SIZE), 12.0)

    assert scheduler.load(0, 12.0).waiting == 0
    assert scheduler.load(0, 12.0).expected_delay > 1.9


def test_a_disk_that_was_never_tried_is_taken_for_one_like_the_others():
    """Disk 1 reads in a millisecond: disk 0, not tried yet, gets its half of what comes."""
    scheduler = ExpectedDelay(disks=(0, 1))
    for number in range(20):
        scheduler.submit(ReadRequest(number, (1,), SIZE), number * 1.0)
        scheduler.next(1, number * 1.0)
        scheduler.finish(1, number + 0.001)
    for number in range(100, 110):
        scheduler.submit(ReadRequest(number, (0, 1), SIZE), 20.0)

    assert [scheduler.load(disk, 20.0).waiting for disk in (0, 1)] == [5, 5]


def test_equal_disks_keep_the_order_of_the_replicas():
    scheduler = ExpectedDelay(disks=(0, 1))
    scheduler.submit(ReadRequest(1, (1, 0), SIZE), 0.0)

    assert scheduler.load(1, 0.0).waiting == 1


def test_expected_delay_is_what_a_new_request_will_take():
    """Ten requests of 0.1 s wait: the eleventh is done after 1.1 s."""
    scheduler = teach(ExpectedDelay, {0: 0.1})
    for number in range(10):
        scheduler.submit(ReadRequest(100 + number, (0,), SIZE), 10.0)

    assert scheduler.load(0, 10.0).expected_delay == pytest.approx(1.1, rel=0.02)
