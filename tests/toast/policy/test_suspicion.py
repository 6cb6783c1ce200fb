"""Suspicion: proof bans, company does not, and each chance comes later than the one before."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.policy.suspicion import Suspicion, SuspicionSettings

A, B = ("127.0.0.1", 1), ("127.0.0.2", 2)


def fail(suspicion, piece, *parts):
    for address in parts:
        suspicion.asked(piece, address)
    return suspicion.failed(piece)


def first_pardon(suspicion, start, until=100.0):
    """When somebody gets another chance, looking ten times a second."""
    for tenth in itertools.count():
        now = start + tenth / 10
        if suspicion.pardoned(now):
            return now
        if now > until:
            return None
    return None


def test_who_sent_all_of_a_wrong_piece_has_lied():
    assert fail(Suspicion(), 3, A, A) == A


@pytest.mark.parametrize("parts", [(A, B), (A, None), (None, None), ()])
def test_in_company_or_beside_what_we_put_in_nothing_is_proven(parts):
    assert fail(Suspicion(), 3, *parts) is None


def test_only_what_was_asked_since_it_failed_is_held_against_anybody():
    suspicion = Suspicion()
    fail(suspicion, 3, A, B)
    assert fail(suspicion, 3, B) == B


def test_what_passed_is_held_against_nobody():
    suspicion = Suspicion()
    suspicion.asked(3, A)
    suspicion.passed(3)
    assert fail(suspicion, 3, B) == B


def test_a_suspect_is_out_until_its_wrong_pieces_were_had_elsewhere():
    suspicion = Suspicion()
    fail(suspicion, 3, A, B)
    suspicion.suspect(5.0, A)
    fail(suspicion, 4, A, B)
    assert suspicion.out == {A}
    assert first_pardon(suspicion, 5.0, until=9.0) is None
    suspicion.passed(3)
    assert first_pardon(suspicion, 9.0, until=10.0) is None
    suspicion.passed(4)
    assert suspicion.pardoned(10.0) == (A,)
    assert suspicion.out == frozenset()
    assert suspicion.suspected == {A}


def test_a_piece_that_never_comes_again_does_not_hold_it_for_ever():
    suspicion = Suspicion()
    fail(suspicion, 3, A, B)
    suspicion.suspect(5.0, A)
    assert first_pardon(suspicion, 5.0) == pytest.approx(25.0)


def test_each_chance_comes_later_than_the_one_before():
    suspicion = Suspicion()
    waits = []
    for start in (0.0, 100.0, 200.0):
        suspicion.suspect(start, A)
        waits.append(first_pardon(suspicion, start, until=start + 50) - start)
    assert waits == pytest.approx([1.0, 2.0, 4.0])


def test_being_accused_again_while_out_changes_nothing():
    """libtorrent tells of it again for each piece that it had begun."""
    suspicion = Suspicion()
    suspicion.suspect(0.0, A)
    suspicion.suspect(0.9, A)
    assert suspicion.pardoned(1.0) == (A,)


def test_who_is_banned_on_proof_is_not_pardoned():
    suspicion = Suspicion()
    suspicion.suspect(0.0, A)
    suspicion.convicted(A)
    assert suspicion.pardoned(50.0) == ()
    assert suspicion.suspected == frozenset()


peers = st.sampled_from([A, B, ("127.0.0.3", 3), None])
deeds = st.one_of(
    st.tuples(st.just("asked"), st.integers(0, 3), peers),
    st.tuples(st.just("failed"), st.integers(0, 3)),
    st.tuples(st.just("passed"), st.integers(0, 3)),
    st.tuples(st.just("suspect"), peers.filter(bool)),
    st.tuples(st.just("wait"), st.floats(0, 5)),
)


@given(st.lists(deeds, max_size=60))
def test_everyone_who_is_not_proven_guilty_is_let_in_in_the_end(story):
    settings = SuspicionSettings()
    suspicion, now = Suspicion(settings), 0.0
    asked = {piece: set() for piece in range(4)}
    for deed, *what in story:
        if deed == "asked":
            suspicion.asked(*what)
            asked[what[0]].add(what[1])
        elif deed == "failed":
            liar, parts = suspicion.failed(*what), asked[what[0]]
            assert liar == (next(iter(parts)) if len(parts) == 1 else None)
            asked[what[0]] = set()
        elif deed == "passed":
            suspicion.passed(*what)
            asked[what[0]] = set()
        elif deed == "suspect":
            suspicion.suspect(now, *what)
        else:
            now += what[0]
            before = suspicion.out
            assert set(suspicion.pardoned(now)) == before - suspicion.out
    times = len(story)
    longest = max(settings.unsettled_seconds, settings.pardon_seconds * 2.0**times)
    suspicion.pardoned(now + longest)
    assert suspicion.out == frozenset()
