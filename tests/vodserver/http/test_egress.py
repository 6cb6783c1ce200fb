"""The egress cap, in virtual time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import ServeUsageError
from vodserver.http.egress import EgressCap

CHUNK = 256 * 1024


def send(cap, senders, until):
    """Let senders, each a (chunk, urgent), send as much as they may: bytes of each."""
    sent = [0] * len(senders)
    asked = {cap.ask(chunk, urgent=urgent): n for n, (chunk, urgent) in enumerate(senders)}
    now = 0.0
    while now <= until:
        for number in cap.grant(now):
            sender = asked.pop(number)
            chunk, urgent = senders[sender]
            sent[sender] += chunk
            asked[cap.ask(chunk, urgent=urgent)] = sender
        now = cap.next_time(now)
    return sent


@given(
    rate=st.floats(1e5, 1e9),
    chunks=st.lists(st.integers(1000, CHUNK), min_size=1, max_size=20),
    seconds=st.floats(1, 20),
)
def test_the_cap_holds_and_is_used(rate, chunks, seconds):
    chunks = [max(chunk, int(rate / 500)) for chunk in chunks]  # fewer steps
    sent = sum(send(EgressCap(rate), [(chunk, False) for chunk in chunks], seconds))

    assert sent <= rate * (seconds + 0.05) + max(chunks) + 1  # sums of floats
    assert sent >= rate * seconds - max(chunks)


def test_every_connection_gets_the_same():
    sent = send(EgressCap(1e6), [(10_000, False)] * 7, 10.0)

    assert max(sent) - min(sent) <= 10_000


def test_streams_that_play_go_first():
    streams = [(30_000, True)] * 2
    cap = EgressCap(1e6)
    plain = cap.ask(CHUNK)
    first = [cap.ask(chunk, urgent=urgent) for chunk, urgent in streams]

    assert cap.grant(0.0) == first
    assert cap.grant(1.0) == [plain]


def test_nobody_waits_while_there_is_enough():
    cap = EgressCap(1e6)

    assert cap.take(40_000, 0.0)
    assert cap.take(40_000, 0.0)  # the bucket was not empty yet
    assert not cap.take(1, 0.0)
    assert cap.next_time(0.0) is None
    assert cap.take(1, 0.04)


def test_nobody_overtakes_those_who_wait():
    cap = EgressCap(1e6)
    cap.ask(10)

    assert not cap.take(10, 5.0)


def test_who_leaves_is_not_waited_for():
    cap = EgressCap(1e6)
    leaving, staying = cap.ask(CHUNK), cap.ask(CHUNK)
    assert cap.latest_time(0.0) == pytest.approx((2 * CHUNK - 50_000) / 1e6)
    cap.forget(leaving)
    cap.forget(leaving)
    assert cap.latest_time(0.0) == pytest.approx((CHUNK - 50_000) / 1e6)

    assert cap.waiting == 1
    assert cap.grant(0.0) == [staying]
    assert cap.next_time(0.0) is None


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_an_impossible_cap_is_refused(rate):
    with pytest.raises(ServeUsageError):
        EgressCap(rate)
