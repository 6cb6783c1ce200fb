"""What every placement policy must do; run by the test of each."""

import numpy as np
import pytest

from vodserver.allocation import Allocation
from vodserver.errors import AllocationError

__all__ = ["check_allocation"]


def check_allocation(policy: Allocation) -> None:
    """Fail where a policy does not keep the promises of `Allocation`."""
    for disks in range(policy.min_disks, policy.min_disks + 6):
        for extents in (1, 2, 7, 200):
            for seed in range(3):
                _check_placement(policy, extents, disks, seed)
    _check_refusals(policy)


def _check_placement(policy: Allocation, extents: int, disks: int, seed: int) -> None:
    used = np.random.default_rng(seed + 100).integers(0, 10**12, disks)
    before = used.copy()

    placed = policy.place(extents, used, np.random.default_rng(seed))
    again = policy.place(extents, used, np.random.default_rng(seed))

    assert placed.shape == (extents, policy.copies)
    assert placed.dtype == np.int64
    assert placed.min() >= 0
    assert placed.max() < disks
    for row in placed:
        assert len(set(row.tolist())) == policy.copies, "two copies of an extent on one disk"
    assert (placed == again).all(), "chance that was not handed in"
    assert (used == before).all(), "the caller's array was changed"


def _check_refusals(policy: Allocation) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(AllocationError, match="disks"):
        policy.place(5, np.zeros(policy.min_disks - 1, dtype=np.int64), rng)
    with pytest.raises(AllocationError, match="no extents"):
        policy.place(0, np.zeros(policy.min_disks, dtype=np.int64), rng)
