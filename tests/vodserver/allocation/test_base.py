"""The registry of placement policies."""

import pytest

from vodserver.allocation import ALLOCATIONS, Naive, Raid1, Rda, Rda3, with_copies
from vodserver.errors import AllocationError


def test_policies_are_known_by_their_names():
    assert ALLOCATIONS.create("rda") == Rda()
    assert ALLOCATIONS.create("naive") == Naive()
    assert all(ALLOCATIONS.create(name).name == name for name in ALLOCATIONS.names())


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(AllocationError, match=r"'raid7'.*naive, raid0, raid1, random, rda"):
        ALLOCATIONS.create("raid7")


@pytest.mark.parametrize(
    ("name", "copies", "policy"),
    [
        ("rda", None, Rda()),
        ("rda", 2, Rda()),
        ("rda", 3, Rda3()),
        ("rda-3", None, Rda3()),
        ("rda-3", 3, Rda3()),
        ("raid1", 2, Raid1()),
    ],
)
def test_a_policy_is_chosen_by_its_copies_too(name, copies, policy):
    assert with_copies(name, copies) == policy


@pytest.mark.parametrize(("name", "copies"), [("raid1", 3), ("rda", 1), ("naive", 2), ("rda-3", 2)])
def test_copies_that_a_policy_does_not_make_are_refused(name, copies):
    with pytest.raises(AllocationError, match=f"'{name}' makes .*, not {copies}: choose 'rda'"):
        with_copies(name, copies)
