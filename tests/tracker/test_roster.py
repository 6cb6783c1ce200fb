"""Rosters against a plain dictionary."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.roster import Roster

KEYS = st.integers(1, 9)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "touch", "remove", "began"]), KEYS, st.floats(0, 0.999)),
    max_size=60,
)


def name(key):
    return b"%020d" % key


@given(width=st.sampled_from([6, 18]), steps=STEPS)
def test_whatever_happens_each_member_keeps_what_is_its_own(width, steps):
    roster, heard, began = Roster(width, complete=False), {}, {}
    for now, (what, key, chance) in enumerate(steps):
        if what == "add" and key not in heard:
            roster.add(key, name(key), now, counted=key % 2 == 0, chance=chance)
            heard[key] = now
        elif what == "remove" and key in heard:
            roster.remove(key)
            del heard[key]
            began.pop(key, None)
        elif what == "touch" and key in heard:
            roster.heard[roster.places[key]] = now
            heard[key] = now
        elif what == "began" and key in heard:
            began[key] = round(chance * 4) / 4  # several at the same time
            roster.set_began(roster.places[key], began[key])
    assert len(roster) == len(heard) == len(roster.packed) // width == len(roster.ids) // 20
    for key, place in roster.places.items():
        assert roster.key_at(place) == key
        assert roster.id_at(place) == name(key)
        assert roster.heard[place] == heard[key]
        assert roster.counted[place] == (key % 2 == 0)
        then = roster.began_at(place)
        assert math.isnan(then) if key not in began else then == began[key]
    ahead = roster.just_ahead(0.6, 100)
    assert [then for then, _ in ahead] == sorted(
        (then for then in began.values() if then < 0.6), reverse=True
    )
    assert all(began[roster.key_at(place)] == then for then, place in ahead)


def full(count):
    roster = Roster(6, complete=False)
    for key in range(1, count + 1):
        roster.add(key, name(key), float(key), counted=False, chance=0.0)
    return roster


def test_a_window_goes_on_from_the_start():
    roster = full(5)
    order = [roster.key_at(place) for place in range(5)]
    packed = roster.window(3, 3)
    keys = [int.from_bytes(packed[start : start + 6], "big") for start in range(0, 18, 6)]
    assert keys == [order[3], order[4], order[0]]


def test_the_longest_silent_are_found():
    roster = full(5)
    heard, place = roster.oldest()
    assert (heard, roster.key_at(place)) == (1.0, 1)
    assert sorted(roster.silent_since(2.0)) == [1, 2]
    assert Roster(6, complete=True).silent_since(9.0) == []


def test_nobody_can_be_removed_twice():
    roster = full(1)
    roster.remove(1)
    with pytest.raises(KeyError):
        roster.remove(1)
