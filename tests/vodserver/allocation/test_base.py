"""The registry of placement policies."""

import pytest

from vodserver.allocation import ALLOCATIONS, Naive, Rda
from vodserver.errors import AllocationError


def test_policies_are_known_by_their_names():
    assert ALLOCATIONS.create("rda") == Rda()
    assert ALLOCATIONS.create("naive") == Naive()
    assert all(ALLOCATIONS.create(name).name == name for name in ALLOCATIONS.names())


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(AllocationError, match=r"'raid7'.*naive, raid0, raid1, random, rda"):
        ALLOCATIONS.create("raid7")
