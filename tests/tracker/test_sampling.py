import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.roster import Roster
from tracker.sampling import Sampler, pack


def roster(keys, width=6):
    made = Roster(width, complete=False)
    for key in keys:
        made.add(key, b"%020d" % key, 0.0, counted=False, chance=0.5)
    return made


def keys_of(packed, width=6):
    return [
        int.from_bytes(packed[start : start + width], "big")
        for start in range(0, len(packed), width)
    ]


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    wanted=st.integers(0, 40),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_a_sample_is_as_large_as_it_can_be_and_has_nobody_twice_and_not_the_asker(
    sizes, wanted, seed, data
):
    rosters, asker = [], None
    for number, size in enumerate(sizes):
        rosters.append((roster(range(100 * number + 1, 100 * number + 1 + size)), -1))
    last, _ = rosters[-1]
    if len(last) > 1 and data.draw(st.booleans()):
        asker = 100 * (len(sizes) - 1) + 1
        rosters[-1] = (last, last.places[asker])
    found = keys_of(Sampler(np.random.default_rng(seed)).packed(rosters, wanted))
    assert len(found) == len(set(found)) == min(wanted, sum(sizes) - (asker is not None))
    assert asker not in found


@pytest.mark.parametrize("asker", [None, 3])
def test_each_is_drawn_equally_often_whoever_asks_and_wherever_it_stands(asker):
    """4000 draws of 4 of 12 or 11: expected 1333 or 1455 times, standard deviation 31 at most."""
    one, other = roster(range(1, 9)), roster(range(101, 105))
    own = -1 if asker is None else one.places[asker]
    sampler, seen = (
        Sampler(np.random.default_rng(1)),
        dict.fromkeys([*range(1, 9), *range(101, 105)], 0),
    )
    for _ in range(4000):
        for key in keys_of(sampler.packed([(one, own), (other, -1)], 4)):
            seen[key] += 1
    if asker is not None:
        assert seen.pop(asker) == 0
    mean = 16_000 / len(seen)
    assert all(abs(count - mean) < 150 for count in seen.values())


def test_nobody_is_drawn_from_nothing():
    sampler = Sampler(np.random.default_rng(1))
    assert sampler.windows([], 5) == []
    assert sampler.seats([], 5, None, b"x" * 20) == []


def test_endpoints_are_packed_by_width():
    four, six = roster([1, 2]), roster([3], width=18)
    seats = [(four, four.places[2]), (six, 0), (four, four.places[1])]
    assert keys_of(pack(seats, 6)) == [2, 1]
    assert keys_of(pack(seats, 18), 18) == [3]
