"""Sums over workers, those that died included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import ChannelError
from vodserver.workers.tally import Counts, Tally

NUMBERS = st.integers(0, 2**50)
ANSWERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.lists(st.sampled_from("xy"), max_size=1), NUMBERS
    ).map(list),
    max_size=3,
)
COUNTS = st.builds(
    Counts,
    bytes_sent=NUMBERS,
    connections=NUMBERS,
    accepted=NUMBERS,
    refused=NUMBERS,
    streamed_bytes=NUMBERS,
    dropped=NUMBERS,
    waiting=NUMBERS,
    late=NUMBERS,
    lag_seconds=st.floats(0, 10),
    answers=ANSWERS,
)


@given(st.lists(st.tuples(st.integers(1, 3), COUNTS), max_size=10), st.sets(st.integers(1, 3)))
def test_the_last_of_each_counts_and_what_the_dead_did_stays(told, dead):
    tally, last = Tally(), {}
    for worker, counts in told:
        tally.note(worker, counts)
        last[worker] = counts
    for worker in dead:
        tally.end(worker)

    total = tally.total()
    alive = [counts for worker, counts in last.items() if worker not in dead]
    for name in ("bytes_sent", "accepted", "refused", "streamed_bytes", "dropped", "late"):
        assert getattr(total, name) == sum(getattr(each, name) for each in last.values())
    for name in ("connections", "waiting"):
        assert getattr(total, name) == sum(getattr(each, name) for each in alive)
    assert total.lag_seconds == max((each.lag_seconds for each in alive), default=0.0)
    assert tally.bytes_sent == total.bytes_sent
    assert tally.streamed_bytes == total.streamed_bytes
    assert sum(row[2] for row in total.answers) == sum(
        row[2] for each in last.values() for row in each.answers
    )


def test_one_that_ends_twice_counts_once():
    tally = Tally()
    tally.note(1, Counts(bytes_sent=5, connections=2))
    tally.end(1)
    tally.end(1)
    tally.end(9)

    assert (tally.total().bytes_sent, tally.total().connections) == (5, 0)


def test_what_are_no_counts_is_refused():
    assert Counts.parse({"bytes_sent": 3}).bytes_sent == 3
    with pytest.raises(ChannelError):
        Counts.parse({"bytes": 3})
