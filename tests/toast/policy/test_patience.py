"""Patience: silence is hung up on, a trickle fills no place, and who is not asked owes nothing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.policy.patience import Patience, PatienceSettings, Showing

A, B = ("127.0.0.1", 1), ("127.0.0.2", 2)
FILM_RATE = 100_000.0


def watch(patience, *showings, step=1.0, start=0.0):
    """One neighbour's showings, one a second; returns when it was hung up on, if ever."""
    for number, showing in enumerate(showings):
        now = start + number * step
        if A in patience.observe(now, [(A, showing)], FILM_RATE):
            return now
    return None


def asked(received=0):
    return Showing(received, asked=True, choking=False)


def idle(received=0):
    return Showing(received, asked=False, choking=False)


def choking():
    return Showing(0, asked=False, choking=True)


def test_who_takes_requests_and_says_nothing_is_hung_up_on():
    assert watch(Patience(), *[asked()] * 10) == pytest.approx(4.0)


def test_any_byte_shows_that_somebody_is_there():
    patience = Patience()
    assert watch(patience, *[asked(n // 3) for n in range(60)]) is None


def test_who_is_asked_nothing_owes_nothing():
    patience = Patience()
    assert watch(patience, *[idle()] * 60) is None
    assert not patience.weak


def test_silence_counts_from_the_last_time_that_nothing_was_asked():
    assert watch(Patience(), *[idle()] * 10, *[asked()] * 10) == pytest.approx(13.0)


def test_the_silent_are_shunned_for_a_while():
    patience = Patience()
    watch(patience, *[asked()] * 5)
    assert patience.is_shunned(A, 5.0)
    assert not patience.is_shunned(B, 5.0)
    assert patience.is_shunned(A, 63.0)
    assert not patience.is_shunned(A, 64.5)


def test_who_comes_back_begins_anew():
    patience = Patience()
    assert watch(patience, *[asked()] * 5) == 4.0
    patience.observe(5.0, [], FILM_RATE)
    assert watch(patience, *[asked()] * 10, start=70.0) == 74.0


def test_a_new_connection_whose_count_begins_again_is_not_taken_for_silence():
    patience = Patience()
    watch(patience, *[asked(1000 * n) for n in range(10)])
    assert watch(patience, asked(5), asked(6), asked(7), start=10.0) is None


def test_a_trickle_is_weak_and_not_hung_up_on():
    patience = Patience()
    assert watch(patience, *[asked(1000 * n) for n in range(7)]) is None
    assert patience.weak == {A}


def test_a_fifth_of_the_film_s_rate_is_enough():
    patience = Patience()
    watch(patience, *[asked(21_000 * n) for n in range(20)])
    assert not patience.weak


def test_who_never_lets_us_in_is_weak():
    patience = Patience()
    assert watch(patience, *[choking()] * 7) is None
    assert patience.weak == {A}


def test_the_weak_can_show_better():
    patience = Patience()
    watch(patience, *[asked(1000 * n) for n in range(7)])
    assert patience.weak
    watch(patience, *[asked(7000 + 50_000 * n) for n in range(10)], start=7.0)
    assert not patience.weak


def test_a_verdict_outlasts_a_pause_in_which_nothing_is_asked():
    patience = Patience()
    watch(patience, *[asked(1000 * n) for n in range(7)], *[idle(6000)] * 30)
    assert patience.weak == {A}


def test_who_is_gone_is_forgotten():
    patience = Patience()
    watch(patience, *[asked(1000 * n) for n in range(7)])
    patience.observe(8.0, [(B, asked())], FILM_RATE)
    assert not patience.weak


@given(
    gains=st.lists(st.integers(0, 50_000), min_size=2, max_size=40),
    silent=st.floats(1.0, 8.0),
)
def test_only_those_are_hung_up_on_who_gave_nothing_for_so_long(gains, silent):
    patience = Patience(PatienceSettings(silent_seconds=silent))
    total, heard = 0, 0.0
    for now, gain in enumerate(gains):
        total += gain
        if gain or now == 0:
            heard = float(now)
        hung_up = patience.observe(float(now), [(A, asked(total))], FILM_RATE)
        assert bool(hung_up) == (now - heard >= silent)


def crowd(patience, many, now, *, called=True):
    """So many who choke us are looked at; who of them is hung up on."""
    showing = Showing(0, asked=False, choking=True, called=called)
    some = [((f"127.0.0.{n}", n), showing) for n in range(1, many + 1)]
    return patience.observe(now, some, FILM_RATE)


def test_when_many_who_were_called_bring_nothing_nobody_else_is_called():
    patience = Patience(PatienceSettings(most_weak=3))
    for now in range(6):
        crowd(patience, 2, now)
    assert len(patience.weak) == 2
    assert not patience.is_enough
    for now in range(6, 12):
        crowd(patience, 3, now)
    assert patience.is_enough
    crowd(patience, 2, 12)
    assert not patience.is_enough


def test_those_who_called_us_keep_us_from_calling_nobody():
    patience = Patience(PatienceSettings(most_weak=3))
    for now in range(60):
        assert not crowd(patience, 20, now, called=False)
    assert len(patience.weak) == 20
    assert not patience.is_enough


def hung_up(patience, rates, seconds, *, start=0, newcomer=None):
    """When each of some neighbours was hung up on, who send so many bytes a second.

    With `newcomer`, another one with such a rate takes the place of each.
    """
    came = dict.fromkeys(((f"127.0.1.{n}", n) for n in range(len(rates))), start)
    sends = dict(zip(came, rates, strict=True))
    gone = {}
    for now in range(start, start + seconds):
        there = [(who, asked((now - at) * sends[who])) for who, at in came.items()]
        for who in patience.observe(now, there, FILM_RATE):
            gone[who] = now
            del came[who]
            if newcomer is not None:
                other = (f"127.0.2.{len(gone)}", len(gone))
                came[other], sends[other] = now, newcomer
    return gone


SEARCHING = PatienceSettings(
    weak_share=0.2, most_weak=3, weak_seconds=5.0, search_seconds=2.0, most_search_seconds=8.0
)


def test_of_too_many_who_bring_little_the_poorest_one_makes_room():
    patience = Patience(SEARCHING)
    gone = hung_up(patience, [10_000, 5_000, 15_000, 90_000], 60)
    assert gone == {("127.0.1.1", 1): 5}  # judged after 5 s; two are not too many
    assert not patience.is_enough
    assert patience.is_shunned(("127.0.1.1", 1), 60)


def test_where_nobody_brings_more_the_search_slows_down():
    gone = hung_up(Patience(SEARCHING), [1000] * 3, 60, newcomer=1000)
    times = sorted(gone.values())
    assert times[:3] == [5, 11, 17]  # each newcomer is judged after 5 s
    assert all(later - sooner == 8 for sooner, later in pairwise(times[2:]))


def test_after_a_good_one_the_search_is_quick_again():
    patience = Patience(SEARCHING)
    hung_up(patience, [1000] * 3, 60, newcomer=1000)
    hung_up(patience, [50_000], 10, start=100)
    gone = hung_up(patience, [1000, 1001, 1002, 1003, 1004], 12, start=200)
    assert sorted(gone.values()) == [205, 207, 211]


def test_few_who_bring_nothing_are_kept():
    patience = Patience(PatienceSettings(most_weak=3))
    assert not any(crowd(patience, 2, now) for now in range(200))
