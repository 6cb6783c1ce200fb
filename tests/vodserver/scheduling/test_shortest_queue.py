"""Less queued is sooner done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import StoreUsageError
from vodserver.scheduling import SCHEDULERS, ShortestQueue


@pytest.mark.parametrize(
    ("queues", "order"),
    [
        ([], []),
        ([7], [0]),
        ([0, 0], [0, 1]),
        ([1, 0], [1, 0]),
        ([5, 9], [0, 1]),
        ([3, 1, 2], [1, 2, 0]),
        ([3, 3, 2], [2, 0, 1]),
    ],
)
def test_replicas_are_ranked_by_what_their_disks_have_queued(queues, order):
    assert ShortestQueue().order(queues) == order


@given(st.lists(st.integers(0, 10**12), max_size=8))
def test_every_replica_is_ranked_once_and_none_before_a_shorter_queue(queues):
    order = ShortestQueue().order(queues)

    assert sorted(order) == list(range(len(queues)))
    ranked = [queues[n] for n in order]
    assert ranked == sorted(queues)


def test_policies_are_known_by_their_names():
    assert SCHEDULERS.create("shortest-queue") == ShortestQueue()
    assert all(SCHEDULERS.create(name).name == name for name in SCHEDULERS.names())
    with pytest.raises(StoreUsageError, match=r"'longest'.*shortest-queue"):
        SCHEDULERS.create("longest")
