"""Links: what is shared, what is capped, and that no byte is lost between two changes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.sim.events import Events
from experiments.sim.links import Downlink, Transfer, Uplink


class Sent(Transfer):
    """A transfer that notes when it was over."""

    def __init__(self, events, uplink, downlink, size, *, runs=1):
        super().__init__(uplink, downlink)
        self.left = size
        self._size, self._runs, self._events = size, runs, events
        self.over = []

    def sent(self):
        self.over.append(self._events.now)
        self.left = self._size
        return len(self.over) < self._runs


def test_what_is_sent_at_once_shares_the_uplink():
    events = Events()
    uplink = Uplink(100.0, events)
    first = Sent(events, uplink, Downlink(), 100.0)
    second = Sent(events, uplink, Downlink(), 100.0)
    uplink.start(first)
    events.at(0.5, lambda _: uplink.start(second))

    events.run()

    # Half of the first alone, then both at half the rate, then the rest of the second alone.
    assert first.over == [pytest.approx(1.5)]
    assert second.over == [pytest.approx(2.0)]
    assert uplink.sent_bytes == pytest.approx(200.0)


def test_what_one_downlink_does_not_take_the_others_get():
    events = Events()
    uplink = Uplink(100.0, events)
    slow = Sent(events, uplink, Downlink(20.0), 100.0)
    fast = Sent(events, uplink, Downlink(), 100.0)
    uplink.start(slow)
    uplink.start(fast)

    assert (slow.rate, fast.rate) == (20.0, 80.0)


def test_a_downlink_is_shared_by_what_comes_from_several():
    events = Events()
    downlink = Downlink(60.0)
    uplinks = [Uplink(100.0, events), Uplink(math.inf, events)]
    transfers = [Sent(events, uplink, downlink, 60.0) for uplink in uplinks]
    for uplink, transfer in zip(uplinks, transfers, strict=True):
        uplink.start(transfer)

    events.run()

    assert [transfer.over for transfer in transfers] == [[pytest.approx(2.0)]] * 2


def test_a_stopped_transfer_is_sent_no_more():
    events = Events()
    uplink = Uplink(10.0, events)
    transfer = Sent(events, uplink, Downlink(), 100.0)
    uplink.start(transfer)
    events.run(4.0)
    uplink.stop(transfer)

    assert not events.run(100.0)
    assert transfer.over == []
    assert uplink.sent_bytes == pytest.approx(40.0)


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(1, 50), st.integers(1, 3)), max_size=6),
    st.sampled_from([math.inf, 5.0]),
)
def test_nothing_is_faster_than_the_caps_and_nothing_is_lost(plans, cap):
    events = Events()
    uplink, downlink = Uplink(10.0, events), Downlink(cap)
    transfers = []
    for at, size, runs in plans:
        transfer = Sent(events, uplink, downlink, size, runs=runs)
        transfers.append((transfer, runs))
        events.at(at, uplink.start, transfer)

    for time in range(1, 400):
        events.run(float(time))
        uplink.advance()
        assert uplink.sent_bytes <= min(10.0, cap) * time + 1e-6

    total = sum(size * runs for _, size, runs in plans)
    dust = 1e-3 * sum(runs for *_, runs in plans)  # so little is left of what is over
    assert uplink.sent_bytes == pytest.approx(total, abs=dust)
    assert all(len(transfer.over) == runs for transfer, runs in transfers)


def test_events_at_one_time_happen_in_the_order_in_which_they_were_told():
    events, seen = Events(), []
    for name in "abc":
        events.at(1.0, seen.append, name)
    events.at(0.5, seen.append, "first")

    assert not events.run()
    assert seen == ["first", "a", "b", "c"]
