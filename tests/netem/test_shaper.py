import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.distributions import Distribution
from netem.shaper import Shaper, flip_bit
from netem.topology import GilbertElliott, LatencyClass, Ways


class OneCopy:
    """A shaper that makes no second copies: of each packet, when it comes out."""

    def __init__(self, seed=1, **options):
        self.inner = Shaper.sending(LatencyClass("a", **options), random.Random(seed))

    def due(self, now, size):
        fates = self.inner.fates(now, size)
        return fates[0].due if fates else None

    def __getattr__(self, name):
        return getattr(self.inner, name)


shaper = OneCopy


def test_nothing_asked_nothing_done():
    plain = shaper()
    assert [plain.due(now, 1500) for now in (1.0, 1.0, 2.5)] == [1.0, 1.0, 2.5]
    assert plain.passed == 3


def test_packets_wait_for_their_turn_at_a_rate_and_then_travel_together():
    """Two packets of 1500 bytes at 150 kB/s take 10 ms each, one after the other, then 50 ms."""
    link = shaper(rate=150_000.0, delay_seconds=0.05)
    assert link.due(1.0, 1500) == pytest.approx(1.06)
    assert link.due(1.0, 1500) == pytest.approx(1.07)
    assert link.due(2.0, 1500) == pytest.approx(2.06), "an idle link saves nothing up"


def test_who_would_wait_longer_than_the_queue_is_dropped():
    link = shaper(rate=150_000.0, queue_seconds=0.015)
    assert [link.due(1.0, 1500) is None for _ in range(4)] == [False, False, True, True]
    assert (link.passed, link.dropped) == (2, 2)
    assert link.due(1.01, 1500) is not None, "a packet's time later there is room again"


def test_a_queue_of_nothing_still_lets_one_packet_at_a_time_through():
    link = shaper(rate=150_000.0, queue_seconds=0.0)
    assert link.due(1.0, 1500) == pytest.approx(1.01)
    assert link.due(1.0, 1500) is None


@given(st.integers(0, 1000))
def test_the_same_seed_has_the_same_fate(seed):
    one, other = (shaper(seed, loss=0.3, jitter_seconds=0.01, delay_seconds=0.02) for _ in range(2))
    assert [one.due(n, 100) for n in range(50)] == [other.due(n, 100) for n in range(50)]


def test_a_full_queue_does_not_shift_what_befalls_later_packets():
    """The n-th packet's loss depends on the seed and n alone."""
    free = shaper(5, loss=0.5)
    narrow = shaper(5, loss=0.5, rate=1.0, queue_seconds=0.0)
    free_lost = []
    narrow_lost = []
    for _ in range(200):
        before = free.lost, narrow.lost
        free.due(1.0, 100)
        narrow.due(1.0, 100)
        free_lost.append(free.lost - before[0])
        narrow_lost.append(narrow.lost - before[1])
    assert free_lost == narrow_lost
    assert narrow.dropped > 0


def test_loss_and_jitter_are_as_large_as_asked():
    link = shaper(3, loss=0.02, delay_seconds=0.02, jitter_seconds=0.004)
    times = [link.due(0.0, 100) for _ in range(20_000)]
    kept = [time for time in times if time is not None]
    assert link.lost == 20_000 - len(kept) == pytest.approx(400, abs=60)
    assert 0.016 <= min(kept) < 0.0161
    assert 0.0239 < max(kept) <= 0.024
    assert sum(kept) / len(kept) == pytest.approx(0.02, abs=1e-4)


@given(
    st.lists(st.tuples(st.floats(0, 0.02), st.integers(20, 1500)), min_size=1, max_size=60),
    st.floats(1e4, 1e8),
)
def test_no_rate_is_ever_exceeded(arrivals, rate):
    """What has come out by a time is at most what the rate lets out from the first packet on."""
    link = shaper(rate=rate, queue_seconds=10.0)
    now, sent, began = 0.0, 0, None
    for wait, size in arrivals:
        now += wait
        began = now if began is None else began
        due = link.due(now, size)
        sent += size
        assert sent <= (due - began) * rate * (1 + 1e-9) + 1e-6
        assert due >= now


def test_a_class_has_a_way_out_and_perhaps_one_in():
    what = LatencyClass("a", 0.01, rate=1e6)
    assert Shaper.sending(what, random.Random(1)).fates(0.0, 1000)[0].due == pytest.approx(0.011)
    assert Shaper.receiving(what, random.Random(1)) is None
    limited = LatencyClass("a", 0.01, download=1e6)
    receiving = Shaper.receiving(limited, random.Random(1))
    assert receiving.fates(0.0, 1000)[0].due == pytest.approx(0.001)


def test_both_ways_the_delay_is_on_the_way_in_too():
    both = LatencyClass("a", 0.01, rate=1e6, ways=Ways.BOTH)
    assert Shaper.receiving(both, random.Random(1)).fates(0.0, 1000)[0].due == pytest.approx(0.01)


def test_some_packets_come_twice_and_some_with_a_flipped_bit():
    link = shaper(duplicate=0.1, corrupt=0.2)
    fates = [link.fates(0.0, 100) for _ in range(5000)]
    assert sum(len(each) == 2 for each in fates) == link.duplicated == pytest.approx(500, abs=100)
    flips = [fate.flip for each in fates for fate in each if fate.flip is not None]
    assert len(flips) == link.corrupted == pytest.approx(1100, abs=150)
    assert link.passed == 5000 + link.duplicated


@given(st.binary(min_size=1, max_size=50), st.floats(0, 1, exclude_max=True))
def test_a_flipped_bit_is_one_bit(packet, where):
    changed = flip_bit(packet, where)
    assert len(changed) == len(packet)
    assert sum((a ^ b).bit_count() for a, b in zip(packet, changed, strict=True)) == 1


def test_losses_in_bursts_are_as_many_and_as_long_as_asked():
    link = shaper(bursts=GilbertElliott(0.01, 0.25))
    lost = [link.due(0.0, 100) is None for _ in range(50_000)]
    assert sum(lost) / len(lost) == pytest.approx(0.01 / 0.26, abs=0.006)
    runs = "".join("x" if one else " " for one in lost).split()
    assert sum(map(len, runs)) / len(runs) == pytest.approx(4.0, abs=0.4)


def test_who_is_not_delayed_overtakes_and_never_twice_within_the_gap():
    link = shaper(delay_seconds=0.01, reorder=0.5, reorder_gap=4)
    soon = [link.due(0.0, 100) == 0.0 for _ in range(4000)]
    marks = [n for n, one in enumerate(soon) if one]
    assert min(b - a for a, b in itertools.pairwise(marks)) == 4
    assert link.reordered == len(marks) == pytest.approx(4000 / 5, abs=80)


def test_too_many_on_their_way_are_dropped():
    link = shaper(delay_seconds=0.01, limit_packets=3)
    assert [link.due(0.0, 100) is None for _ in range(5)] == [False] * 3 + [True] * 2
    assert link.dropped == 2
    assert link.due(0.0101, 100) is not None


@pytest.mark.parametrize("distribution", Distribution)
def test_correlation_keeps_the_distribution_and_ties_neighbours(distribution):
    options = {"delay_seconds": 0.1, "jitter_seconds": 0.01, "distribution": distribution}
    free, tied = shaper(**options), shaper(correlation=0.8, **options)
    loose = [free.due(0.0, 100) for _ in range(20_000)]
    close = [tied.due(0.0, 100) for _ in range(20_000)]
    assert statistics.fmean(close) == pytest.approx(0.1, abs=1e-3)
    assert statistics.stdev(close) == pytest.approx(statistics.stdev(loose), rel=0.1)
    assert abs(statistics.correlation(loose[1:], loose[:-1])) < 0.03
    assert statistics.correlation(close[1:], close[:-1]) == pytest.approx(0.8, abs=0.1)
