"""Facts in, state out: no disk and no clock."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vodserver.store.catalog import DiskRow
from vodserver.store.upkeep.health import (
    Condition,
    DiskFacts,
    DiskHealth,
    shown_state,
    slow_disks,
)
from vodserver.store.upkeep.settings import UpkeepSettings

SETTINGS = UpkeepSettings(full_below_bytes=1000, recovery_seconds=60.0)
GOOD = DiskFacts(present=True, free_bytes=5000, total_bytes=9000)


def facts(**changed):
    return DiskFacts(**{"present": True, "free_bytes": 5000, "total_bytes": 9000, **changed})


@pytest.fixture
def health():
    return DiskHealth(SETTINGS)


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (facts(), "ok"),
        (facts(present=False, fault="not mounted"), "absent"),
        (facts(present=None, fault="Input/output error"), "failing"),
        (facts(write="done"), "ok"),
        (facts(write="full", fault="No space left"), "full"),
        (facts(write="read-only", fault="Read-only file system"), "read-only"),
        (facts(write="failed", fault="Input/output error"), "failing"),
        (facts(free_bytes=999), "full"),
        (facts(free_bytes=1000), "ok"),
        (facts(free_bytes=0, total_bytes=0), "ok"),
    ],
)
def test_one_look(health, seen, state):
    condition = health.observe(seen, 5.0)

    assert condition.health == state
    assert condition is health.condition
    assert bool(condition.reason) == (state != "ok")
    assert condition.can_take == (state == "ok")


def test_what_a_write_said_holds_until_the_next_write(health):
    health.observe(facts(write="read-only", fault="no"), 0.0)
    assert health.observe(GOOD, 5.0).health == "read-only"
    assert health.observe(facts(write="done"), 10.0).health == "ok"


def test_a_disk_that_failed_is_failing_until_it_has_been_well_for_a_while(health):
    health.observe(facts(present=None), 0.0)
    assert health.observe(GOOD, 59.0).health == "failing"
    assert health.observe(GOOD, 60.0).health == "ok"


def test_a_disk_that_came_back_starts_anew(health):
    health.observe(facts(present=None), 0.0)
    assert health.observe(facts(present=False), 5.0).health == "absent"
    assert health.observe(GOOD, 10.0).health == "ok"


def test_a_state_knows_since_when_it_is(health):
    health.observe(GOOD, 1.0)
    assert health.observe(facts(present=False), 5.0).since == 5.0
    assert health.observe(facts(present=False), 9.0).since == 5.0
    assert health.observe(GOOD, 12.0).since == 12.0


def test_room_is_remembered_while_the_disk_says_nothing(health):
    health.observe(GOOD, 0.0)
    gone = health.observe(DiskFacts(present=False), 5.0)
    assert (gone.free_bytes, gone.total_bytes) == (5000, 9000)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ((10, 0), (10, 5), "failing"),  # nothing but failures
        ((10, 0), (10, 4), "ok"),  # a few: files, not the disk
        ((10, 0), (100, 5), "ok"),  # rot: most reads succeed
        ((10, 50), (20, 50), "ok"),  # old failures
        ((10, 50), (0, 0), "ok"),  # it was attached anew
        ((10, 0), (14, 5), "failing"),  # more than half
    ],
)
def test_reads_that_fail_make_a_disk_failing_when_they_are_the_rule(health, before, after, state):
    health.observe(GOOD, 0.0, reads=before)
    assert health.observe(GOOD, 5.0, reads=after).health == state


def test_failures_that_come_one_by_one_count_too(health):
    """What failed is read elsewhere from then on: a broken disk does not fail often."""
    for failed in range(5):
        assert health.observe(GOOD, float(failed), reads=(1000, failed)).health == "ok"
    assert health.observe(GOOD, 5.0, reads=(1000, 5)).health == "failing"


def test_failures_between_successes_do_not_add_up(health):
    for turn in range(50):
        assert health.observe(GOOD, float(turn), reads=(3 * turn, turn)).health == "ok"


def test_slow_is_what_is_left_when_nothing_is_wrong(health):
    health.observe(GOOD, 0.0)
    assert health.note_slow(True, 1.0).health == "slow"
    assert health.condition.can_take
    assert health.observe(facts(write="full"), 2.0).health == "full"
    assert health.observe(facts(write="done"), 3.0).health == "slow"
    assert health.note_slow(False, 4.0).health == "ok"


@pytest.mark.parametrize(
    ("seconds", "before", "slow"),
    [
        ({}, (), set()),
        ({0: 1.0}, (), set()),
        ({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.5}, (), {3}),
        ({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.3}, (), set()),
        ({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.3}, (3,), {3}),
        ({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.19}, (3,), set()),
        ({0: 0.001, 1: 0.001, 2: 0.019}, (), set()),  # fast enough for anyone
        ({0: 0.0, 1: 0.1, 2: 0.9}, (), {2}),  # disk 0 made no reads
    ],
)
def test_which_disks_are_slow(seconds, before, slow):
    assert slow_disks(seconds, 4.0, slow_before=before) == slow


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(
                DiskFacts,
                present=st.sampled_from([True, False, None]),
                free_bytes=st.integers(0, 3000),
                total_bytes=st.sampled_from([0, 9000]),
                write=st.sampled_from(["untried", "done", "full", "read-only", "failed"]),
            ),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_whatever_happened_a_disk_that_is_well_for_long_enough_is_ok(story):
    """No state is a dead end."""
    health, now = DiskHealth(SETTINGS), 0.0
    for event in story:
        now += 7.0
        if isinstance(event, bool):
            condition = health.note_slow(event, now)
        else:
            condition = health.observe(event, now)
            assert (condition.health == "absent") == (event.present is False)
        assert condition.since <= now
    health.note_slow(False, now)
    health.observe(facts(write="done"), now + 60.0)
    assert health.observe(facts(write="done"), now + 120.0).health == "ok"


@pytest.mark.parametrize(
    ("state", "health", "shown"),
    [
        ("active", "ok", "ok"),
        ("active", "full", "full"),
        ("draining", "ok", "draining"),
        ("draining", "full", "draining"),
        ("draining", "absent", "absent"),
        ("draining", "failing", "failing"),
        ("lost", "absent", "lost"),
        ("retired", "ok", "retired"),
    ],
)
def test_one_word_for_operators(state, health, shown):
    row = DiskRow(0, "id", Path("/d"), state)
    assert shown_state(row, Condition(health)) == shown


def test_a_disk_that_nobody_looked_at_is_what_the_catalog_says():
    assert shown_state(DiskRow(0, "id", Path("/d"), "draining"), None) == "draining"
    assert shown_state(DiskRow(0, "id", Path("/d")), None) == "ok"
