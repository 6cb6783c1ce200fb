import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.model import count, round_trips, stream
from netem.topology import Host, LatencyClass, Topology, Ways


def topology(**options):
    return Topology("t", (LatencyClass("a", **options),), (Host("h", "a"),))


def trips(what, many=5000):
    return round_trips(what, "a", "a", trips=many, rng=random.Random(1))


def came(what, **options):
    options = {"packets": 2000, "interval_seconds": 0.002, "size": 400} | options
    return stream(what, "a", "a", rng=random.Random(1), **options)


def test_numbers_in_order_are_nothing_but_arrived():
    assert count(4, [0, 1, 3]) == count(4, [0, 1, 3], 0)
    seen = count(4, [0, 1, 3])
    assert (seen.arrived, seen.lost, seen.duplicates, seen.reordered) == (3, 1, 0, 0)


def test_a_late_one_is_reordered_and_a_second_copy_is_not():
    seen = count(4, [2, 0, 2, 1, 3, 0])
    assert (seen.arrived, seen.duplicates, seen.reordered) == (4, 2, 2)


@given(st.lists(st.integers(0, 20)))
def test_every_packet_is_counted_once(numbers):
    seen = count(21, numbers)
    assert seen.arrived + seen.duplicates == len(numbers)
    assert seen.arrived + seen.lost == 21


def test_a_round_trip_pays_both_ends():
    assert statistics.median(trips(topology(delay_seconds=0.01))) == pytest.approx(0.02)
    assert statistics.median(trips(topology(delay_seconds=0.01, ways=Ways.BOTH))) == pytest.approx(
        0.04
    )


def test_the_lost_ones_are_left_out():
    assert len(trips(topology(loss=0.1))) == pytest.approx(5000 * 0.81, abs=120)


def test_overtaking_follows_from_jitter_and_spacing():
    """Uniform jitter of 5 ms either way: never overtaken at 10 ms, often at 1 ms."""
    jittery = topology(delay_seconds=0.02, jitter_seconds=0.005)
    assert came(jittery, interval_seconds=0.01).reordered == 0
    assert came(jittery, interval_seconds=0.001).reordered > 500


def test_a_download_limit_meets_packets_in_the_order_in_which_they_come():
    """A second stage that took them by number would hide what overtook what."""
    jittery = topology(delay_seconds=0.02, jitter_seconds=0.005, download=1e6)
    assert came(jittery, interval_seconds=0.001).reordered > 500


def test_copies_and_flipped_bits_are_as_many_as_asked():
    seen = came(topology(duplicate=0.1, corrupt=0.2))
    assert seen.duplicates == pytest.approx(200, abs=60)
    assert seen.corrupted == pytest.approx(440, abs=90)
