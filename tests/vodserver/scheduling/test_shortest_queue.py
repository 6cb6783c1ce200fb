"""Less queued is sooner done."""

import pytest

from tests.conformance.check_scheduler import check_scheduler
from vodserver.scheduling import SCHEDULERS, ReadRequest, ShortestQueue


@pytest.mark.slow
def test_conforms():
    check_scheduler(lambda disks: SCHEDULERS.create("shortest-queue", disks=disks))


def submit(scheduler, *requests):
    for number, (disks, size) in enumerate(requests):
        scheduler.submit(ReadRequest(number, disks, size), 0.0)


def test_a_request_joins_the_disk_with_the_fewest_bytes_queued():
    scheduler = ShortestQueue(disks=range(3))
    submit(scheduler, ((0,), 500), ((1,), 100), ((1,), 300), ((0, 1), 50))

    assert scheduler.load(1, 0.0).waiting_bytes == 450
    assert scheduler.load(0, 0.0).waiting_bytes == 500


def test_what_a_disk_reads_now_counts_as_queued():
    scheduler = ShortestQueue(disks=(0, 1))
    submit(scheduler, ((0,), 500))
    assert scheduler.next(0, 0.0).id == 0

    scheduler.submit(ReadRequest(9, (0, 1), 50), 0.0)

    assert scheduler.next(1, 0.0).id == 9


@pytest.mark.parametrize("disks", [(0, 1), (1, 0)])
def test_equal_queues_keep_the_order_of_the_replicas(disks):
    scheduler = ShortestQueue(disks=(0, 1))
    submit(scheduler, (disks, 10))

    assert scheduler.load(disks[0], 0.0).waiting == 1
    assert scheduler.load(disks[1], 0.0).waiting == 0


def test_background_reads_do_not_count_as_queue():
    """A scrub must not push viewers onto the other disk: it goes last anyway."""
    scheduler = ShortestQueue(disks=(0, 1))
    scheduler.submit(ReadRequest(1, (0,), 10**9, background=True), 0.0)
    scheduler.submit(ReadRequest(2, (0, 1), 10), 0.0)

    assert scheduler.next(0, 0.0).id == 2


def test_what_moves_from_a_lost_disk_keeps_its_turn():
    """Requests of the lost disk are older than some that wait on the other: they go before."""
    scheduler = ShortestQueue(disks=(0, 1))
    submit(scheduler, ((1,), 1), ((0, 1), 10), ((1,), 10), ((0, 1), 10), ((0,), 10))

    lost = scheduler.withdraw(0)

    assert [request.id for request in lost] == [4]
    order = []
    while (request := scheduler.next(1, 0.0)) is not None:
        order.append(request.id)
        scheduler.finish(1, 0.0)
    assert order == [0, 1, 2, 3]
