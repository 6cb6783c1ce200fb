"""The limited buffer, as pictures and as properties that hold for any stock."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.policy.buffer import Limited, Stock, buffer_names, create_buffer, pieces_within
from toast.policy.errors import PolicyError


def stock(picture, *, playhead=0, lacked=(), index=()):
    """A second a piece. `*` held, `~` begun, `o` the origin sends it, `.` missing."""
    pieces = len(picture)
    slack = np.arange(pieces, dtype=np.float64) - playhead
    passed = playhead - np.arange(1.0, pieces + 1)
    slack[passed >= 0] = np.inf
    slack[list(index)] = -float(playhead)
    passed[list(index)] = -np.inf
    availability = np.ones(pieces, dtype=np.int32)
    availability[list(lacked)] = 0
    marks = np.array(list(picture))
    return Stock(
        slack, passed, marks == "*", np.isin(marks, ("~", "o")), marks == "o", availability
    )


def decide(picture, pieces=8, *, back=2.0, near=3.0, **facts):
    return Limited(pieces, back_seconds=back, near_seconds=near).decide(stock(picture, **facts))


def drawn(mask):
    return "".join("?" if admitted else "." for admitted in mask)


def test_unlimited_keeps_everything():
    decision = create_buffer("unlimited").decide(stock("***..", playhead=2))

    assert decision.eject.size == 0
    assert drawn(decision.admit) == "...??"
    assert not decision.suspend


def test_names():
    assert buffer_names() == ("limited", "unlimited")
    with pytest.raises(PolicyError, match="there is no buffer"):
        create_buffer("tiny")


def test_an_empty_buffer_asks_for_what_it_can_hold_and_no_more():
    assert drawn(decide("............").admit) == "????????...."


def test_what_was_played_longest_ago_goes_first_and_only_as_much_as_needed():
    decision = decide("********........", playhead=5)
    assert decision.eject.tolist() == [0, 1]
    assert drawn(decision.admit) == "........??......"


def test_nothing_goes_while_there_is_room():
    assert decide("******..........", playhead=5).eject.size == 0


def test_what_no_neighbour_has_is_kept_longer():
    assert decide("********........", playhead=5, lacked=(0,)).eject.tolist() == [1, 2]


def test_a_step_back_is_kept_for_at_most_a_quarter_of_the_buffer():
    decision = decide("********........", playhead=6, back=100.0)
    assert decision.eject.tolist() == [0, 1]
    decision = decide("..********........", playhead=4, back=100.0)
    assert decision.eject.size == 0


def test_with_all_of_the_buffer_ahead_it_is_suspended():
    decision = decide("****************", playhead=0, pieces=16)
    assert decision.suspend
    decision = decide("...********.....", playhead=3)
    assert decision.suspend
    assert decision.eject.size == 0
    assert not decision.admit.any()


def test_it_goes_on_when_the_playhead_has_freed_something():
    decision = decide("..********......", playhead=5, back=0.0)
    assert not decision.suspend
    assert decision.eject.tolist() == [2, 3]
    assert drawn(decision.admit) == "..........??...."


def test_after_a_step_back_what_is_due_last_makes_room():
    decision = decide("........********", playhead=2)
    assert decision.eject.tolist() == [15, 14]
    assert drawn(decision.admit) == "..??............"


def test_the_index_stays():
    decision = decide("********........", playhead=7, index=(0, 1))
    assert decision.eject.tolist() == [2, 3]


def test_what_is_under_way_counts_and_goes_on():
    decision = decide("..*****~o.......", playhead=3)
    assert decision.eject.tolist() == []
    assert drawn(decision.admit) == ".......???......"


def test_what_was_begun_and_is_behind_now_goes_last_and_never_what_the_origin_sends():
    decision = decide("~~~~oooo........", playhead=9)
    assert decision.eject.tolist() == [0, 1]
    assert drawn(decision.admit) == ".........??....."


@pytest.mark.parametrize("pieces", [0, 3])
def test_too_small_a_buffer_is_refused(pieces):
    with pytest.raises(PolicyError, match="too small"):
        create_buffer("limited", pieces=pieces)


@pytest.mark.parametrize("times", [{"back_seconds": -1.0}, {"near_seconds": float("nan")}])
def test_times_that_are_none_are_refused(times):
    with pytest.raises(PolicyError, match="0 or more"):
        create_buffer("limited", pieces=8, **times)


def test_how_many_pieces_fit():
    assert pieces_within(1000, 10, most_bytes=None, fraction=None) is None
    assert pieces_within(1000, 10, most_bytes=405, fraction=None) == 40
    assert pieces_within(1000, 10, most_bytes=405, fraction=0.25) == 25
    assert pieces_within(1000, 10, most_bytes=1000, fraction=None) is None
    assert pieces_within(1000, 10, most_bytes=5000, fraction=1.0) is None
    with pytest.raises(PolicyError, match="too small for this film"):
        pieces_within(1000, 10, most_bytes=39, fraction=None)
    with pytest.raises(PolicyError, match="too small for this film"):
        pieces_within(1000, 10, most_bytes=None, fraction=float("nan"))


STATES = st.text(alphabet="**~o..", min_size=6, max_size=40)


@st.composite
def situations(draw):
    picture = draw(STATES)
    pieces = draw(st.integers(4, 20))
    places = st.integers(0, len(picture) - 1)
    known = stock(
        picture,
        playhead=draw(places),
        lacked=draw(st.sets(places)),
        index=draw(st.sets(places, max_size=2)),
    )
    back, near = draw(st.floats(0, 50)), draw(st.floats(0, 50))
    return Limited(pieces, back_seconds=back, near_seconds=near), known


@given(situations())
def test_the_bound_is_kept_whatever_comes(situation):
    """Never more is asked for than there is room for; over the bound, nothing new is."""
    buffer, known = situation
    decision = buffer.decide(known)
    occupied = known.held | known.coming
    fresh = decision.admit & ~known.coming
    after = np.count_nonzero(occupied) - decision.eject.size + np.count_nonzero(fresh)
    assert not fresh.any() or after <= buffer.pieces
    assert not (decision.admit & known.held).any()
    assert decision.suspend == (not fresh.any())


@given(situations())
def test_nothing_goes_that_is_needed_sooner_than_what_comes(situation):
    buffer, known = situation
    decision = buffer.decide(known)
    assert len(set(decision.eject.tolist())) == decision.eject.size
    assert (known.held | known.coming)[decision.eject].all()
    assert not known.closed[decision.eject].any()
    ahead = known.held & np.isfinite(known.slack)
    order = np.argsort(np.where(np.isfinite(known.slack), known.slack, np.inf), kind="stable")
    soonest = order[: buffer.pieces - buffer.pieces // 4]
    assert not (set(decision.eject.tolist()) & set(np.flatnonzero(ahead)) & set(soonest.tolist()))


@given(situations())
def test_what_is_due_first_gets_room_if_any_can_be_made(situation):
    """So the film goes on."""
    buffer, known = situation
    decision = buffer.decide(known)
    due = np.where(known.held | known.coming, np.inf, known.slack)
    if not np.isfinite(due).any() or known.closed.any():
        return  # nothing is missing, or what the origin sends will make room when it has come
    sooner = (known.held | known.coming) & (known.slack < due.min())
    if np.count_nonzero(sooner) < buffer.pieces - buffer.pieces // 4:
        assert (decision.admit & ~known.coming)[int(np.argmin(due))]


@settings(deadline=None, max_examples=40)
@given(st.integers(10, 60), st.integers(4, 30), st.integers(0, 3), st.randoms())
def test_a_film_is_played_whole_in_any_buffer(length, pieces, speed, random):
    """Whatever arrives when, each piece is there when it is played, and the bound holds."""
    buffer = Limited(pieces, back_seconds=5.0, near_seconds=4.0)
    marks = ["."] * length
    for playhead in range(length):
        while True:
            known = stock("".join(marks), playhead=playhead)
            decision = buffer.decide(known)
            for piece in decision.eject.tolist():
                marks[piece] = "."
            wanted = np.flatnonzero(decision.admit).tolist()
            for piece in random.sample(wanted, min(len(wanted), 1 + speed)):
                marks[piece] = "*" if random.random() < 0.7 else "~"
            assert length - marks.count(".") <= pieces
            if marks[playhead] == "*":
                break
