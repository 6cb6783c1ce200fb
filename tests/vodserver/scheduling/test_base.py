"""The registry of scheduling policies."""

import pytest

from vodserver.errors import StoreUsageError
from vodserver.scheduling import SCHEDULERS


def test_policies_are_known_by_their_names():
    assert SCHEDULERS.names() == ("expected-delay", "lazy", "matched", "shortest-queue")
    assert all(SCHEDULERS.create(name, disks=(0, 1)).name == name for name in SCHEDULERS.names())


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(StoreUsageError, match=r"'longest'.*shortest-queue"):
        SCHEDULERS.create("longest", disks=(0, 1))
    with pytest.raises(StoreUsageError, match=r"does not take these: disks, spindles"):
        SCHEDULERS.create("lazy", disks=(0, 1), spindles=2)
