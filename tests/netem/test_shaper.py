import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.shaper import Shaper
from netem.topology import LatencyClass


def shaper(seed=1, **options):
    return Shaper(random.Random(seed), **({"rate": None, "queue_seconds": 0.1} | options))


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
    link = shaper(rate=rate, queue_seconds=1e9)
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
    assert Shaper.sending(what, random.Random(1)).due(0.0, 1000) == pytest.approx(0.011)
    assert Shaper.receiving(what, random.Random(1)) is None
    limited = LatencyClass("a", 0.01, download=1e6)
    assert Shaper.receiving(limited, random.Random(1)).due(0.0, 1000) == pytest.approx(0.001)
