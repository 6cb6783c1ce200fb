"""How many disks films and viewers take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.errors import UsageError
from vodserver.model import DiskFigures
from vodserver.plan import PLACEMENTS, Wish, plan

DISK = DiskFigures(0.017, 525e6 / 8)


def wish(**changes):
    fields = {
        "films": 100,
        "film_seconds": 6000.0,
        "stream_rate": 0.75e6,
        "viewers": 400,
        "buffer_seconds": 5.0,
        "disk": DISK,
        "disk_bytes": 4e12,
        "busy_share": 1.0,
    }
    return Wish(**(fields | changes))


def test_two_copies_take_twice_the_room():
    """1000 films of 4.5 GB are 4.5 TB; a disk takes 3.6 TB of films."""
    found = {name: plan(name, wish(films=1000, viewers=1)) for name in PLACEMENTS}
    assert {name: one.disks_for_films for name, one in found.items()} == {
        "naive": 2,
        "raid1": 4,
        "rda": 3,
        "rda-3": 4,
    }


def test_eight_disks_feed_what_the_simulator_says():
    """`toast-lab figure 4.3` at 0.5, of which memory does a little: 571, 489 and 434."""
    found = {name: plan(name, wish(films=5000)) for name in PLACEMENTS}
    assert found["rda"].disks == 13
    eight = {
        name: plan(name, wish(viewers=n))
        for name, n in (("rda", 539), ("rda-3", 539), ("raid1", 467), ("naive", 418))
    }
    assert {name: one.disks for name, one in eight.items()} == dict.fromkeys(PLACEMENTS, 8)
    assert [eight[name].streams_random for name in PLACEMENTS] == [539, 539, 467, 421]
    assert all(one.streams_even == 539 for one in eight.values())


def test_what_one_failure_costs():
    found = {name: plan(name, wish(viewers=400)) for name in PLACEMENTS}
    assert found["rda"].streams_after_failure == 337 == found["rda"].streams_random - 67
    assert found["rda"].films_lost == found["raid1"].films_lost == 0
    assert found["rda-3"].streams_after_failure == 337
    assert found["rda-3"].films_lost == 0
    assert found["naive"].films_lost == 13
    for one in found.values():
        assert one.streams_after_failure < one.streams_random


def test_what_a_second_failure_costs():
    """Two of six disks: of a film of 1200 extents in pairs of disks, each of 15 has 80."""
    lost = {name: plan(name, wish(viewers=400)).films_lost_by_two for name in PLACEMENTS}
    disks = {name: plan(name, wish(viewers=400)).disks for name in PLACEMENTS}
    assert disks == {"rda": 6, "rda-3": 6, "raid1": 8, "naive": 8}
    assert lost == {"rda": 100.0, "rda-3": 0.0, "raid1": pytest.approx(3.57), "naive": 25.0}


def test_short_films_may_escape_a_second_failure():
    clips = plan("rda", wish(film_seconds=5.0, viewers=400))
    assert clips.films_lost_by_two == pytest.approx(100 / 15, abs=0.01)


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from(PLACEMENTS))
def test_the_disks_suffice_and_one_group_fewer_would_not(films, viewers, name):
    asked = wish(films=films, viewers=viewers)
    found = plan(name, asked)
    assert found.disks == max(found.disks_for_films, found.disks_for_viewers)
    assert found.streams_random >= viewers
    assert found.streams_even >= found.streams_random
    fewer = plan(name, wish(films=1, viewers=viewers)).disks_for_viewers
    assert fewer == found.disks_for_viewers


@pytest.mark.parametrize(
    "changes", [{"films": 0}, {"busy_share": 0.0}, {"full_share": 1.5}, {"disk_bytes": 0}]
)
def test_wishes_that_cannot_be_meant_are_refused(changes):
    with pytest.raises(UsageError):
        wish(**changes)


def test_other_placements_have_no_plan():
    with pytest.raises(UsageError, match="choose rda, rda-3, raid1, naive"):
        plan("raid0", wish())
    with pytest.raises(UsageError, match="would be needed"):
        plan("naive", wish(viewers=10**8))
