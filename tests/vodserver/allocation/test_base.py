"""The registry of placement policies."""

import pytest

from vodserver.allocation import ALLOCATIONS, Naive, Rda, allocation_named
from vodserver.errors import AllocationError


def test_policies_are_known_by_their_names():
    assert allocation_named("rda") == Rda()
    assert allocation_named("naive") == Naive()
    assert all(policy.name == name for name, policy in ALLOCATIONS.items())


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(AllocationError, match=r"'raid7'.*naive, rda"):
        allocation_named("raid7")
