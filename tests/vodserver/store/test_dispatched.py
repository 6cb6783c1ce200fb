"""Counts of reads that several processes see."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from vodserver.store.dispatched import Dispatched

KEY = ("folder", 7)


def test_each_read_of_a_replica_changes_its_count_and_no_other():
    with Dispatched() as counts:
        here, there = counts.slot(KEY, 0), counts.slot(KEY, 1)
        assert here != there
        counts.note(KEY, 0)
        counts.note(KEY, 0)
        assert (counts.count(here), counts.count(there)) == (2, 0)


def test_who_was_handed_the_file_sees_the_same():
    with Dispatched() as ours, Dispatched(os.dup(ours.fd)) as theirs:
        slot = theirs.slot(KEY, 3)
        ours.note(KEY, 3)
        assert theirs.count(slot) == 1


def test_a_count_that_is_full_begins_again():
    with Dispatched() as counts:
        slot = counts.slot(KEY, 0)
        counts._counts[slot] = 0xFFFFFFFF
        counts.note(KEY, 0)
        assert counts.count(slot) == 0


@given(st.text(max_size=20), st.integers(0, 10**6), st.integers(0, 1000))
def test_every_replica_has_a_place(folder, number, disk):
    with Dispatched() as counts:
        counts.note((folder, number), disk)
        assert counts.count(counts.slot((folder, number), disk)) == 1


def test_nothing_stays_open():
    before = sorted(Path("/proc/self/fd").iterdir())
    with Dispatched():
        pass
    assert sorted(Path("/proc/self/fd").iterdir()) == before
