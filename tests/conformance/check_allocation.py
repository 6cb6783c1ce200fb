"""What every placement policy must do; run by the test of each."""

import numpy as np
import pytest

from vodserver.allocation import Allocation, replacement
from vodserver.errors import AllocationError

__all__ = ["check_allocation", "check_follows_capacity"]

DRAWS = 20_000
DEVIATIONS = 4.5
"""Binomial standard deviations that a count may be off: one count in 150,000 is by chance, and
the seeds are fixed."""


def check_allocation(policy: Allocation) -> None:
    """Fail where a policy does not keep the promises of `Allocation`."""
    for disks in range(policy.min_disks, policy.min_disks + 6):
        for extents in (1, 2, 7, 200):
            for seed in range(3):
                _check_placement(policy, extents, disks, seed)
    _check_disks_that_take_nothing(policy)
    _check_refusals(policy)
    _check_replacements(policy)


def check_follows_capacity(policy: Allocation, capacity: list[int], shares: list[float]) -> None:
    """Fail unless each disk gets its share of the extents, within what chance explains."""
    sizes = np.array(capacity)
    used = np.random.default_rng(1).integers(0, 10**12, len(sizes))
    placed = policy.place(DRAWS, used, np.random.default_rng(11), capacity_bytes=sizes)

    _check_rows(placed, policy.copies)
    got = np.bincount(placed.reshape(-1), minlength=len(sizes))
    expected = np.array(shares)
    spread = np.sqrt(DRAWS * expected * (1 - expected))
    assert (np.abs(got - DRAWS * expected) <= DEVIATIONS * spread).all(), (got, expected * DRAWS)


def _check_rows(placed: np.ndarray, copies: int) -> None:
    assert placed.dtype == np.int64
    for row in placed:
        assert len(set(row.tolist())) == copies, "two copies of an extent on one disk"


def _check_placement(policy: Allocation, extents: int, disks: int, seed: int) -> None:
    rng = np.random.default_rng(seed + 100)
    used = rng.integers(0, 10**12, disks)
    capacity = rng.integers(10**9, 10**12, disks)
    kept = used.copy(), capacity.copy()

    for sizes in (None, capacity):
        placed = policy.place(extents, used, np.random.default_rng(seed), capacity_bytes=sizes)
        again = policy.place(extents, used, np.random.default_rng(seed), capacity_bytes=sizes)

        assert placed.shape == (extents, policy.copies)
        assert placed.min() >= 0
        assert placed.max() < disks
        _check_rows(placed, policy.copies)
        assert (placed == again).all(), "chance that was not handed in"
    assert (used == kept[0]).all(), "the caller's array was changed"
    assert (capacity == kept[1]).all(), "the caller's array was changed"


def _check_disks_that_take_nothing(policy: Allocation) -> None:
    """Disks 0 and 1 of six are full, whatever they hold."""
    capacity = np.array([0, 0, 5, 5, 9, 9]) * 10**9
    for seed in range(5):
        used = np.random.default_rng(seed).integers(0, 10**9, 6)
        placed = policy.place(300, used, np.random.default_rng(seed), capacity_bytes=capacity)
        assert placed.min() >= 2, "placed on a disk that takes nothing"


def _check_refusals(policy: Allocation) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(AllocationError, match="disks"):
        policy.place(5, np.zeros(policy.min_disks - 1, dtype=np.int64), rng)
    with pytest.raises(AllocationError, match="no extents"):
        policy.place(0, np.zeros(policy.min_disks, dtype=np.int64), rng)
    empty = np.zeros(4, dtype=np.int64)
    with pytest.raises(AllocationError, match="and there are 0"):
        policy.place(5, empty, rng, capacity_bytes=empty)
    for capacity in ([10, 10, 10], [10, 10, 10, -1]):
        with pytest.raises(AllocationError, match="one capacity"):
            policy.place(5, empty, rng, capacity_bytes=np.array(capacity))


def _check_replacements(policy: Allocation) -> None:
    """A remade replica is on a disk that can take it and has none of that extent."""
    capacity = np.array([10, 0, 10, 20, 0, 20]) * 10**9
    for seed in range(20):
        used = np.random.default_rng(seed).integers(0, 10**9, 6)
        for held in ([], [0], [3], [4], [2, 3]):
            disk = replacement(policy, held, used, capacity, np.random.default_rng(seed))
            again = replacement(policy, held, used, capacity, np.random.default_rng(seed))
            assert type(disk) is int
            assert disk in {0, 2, 3, 5} - set(held)
            assert disk == again, "chance that was not handed in"
    with pytest.raises(AllocationError, match="no disk is left"):
        replacement(policy, [0, 2, 3, 5], capacity, capacity, np.random.default_rng(1))
