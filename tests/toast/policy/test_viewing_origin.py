"""What one viewing asks of the server: judged by what each neighbour can bring, within a budget."""

import math

import numpy as np
import pytest

from tests.toast.policy.test_viewing import (
    GEOMETRY,
    PIECES,
    all_blocks,
    facts,
    mask,
    ordered,
    policy,
)
from toast.common.geometry import BLOCK_BYTES
from toast.policy import (
    BudgetSettings,
    GiveUpSettings,
    HandOverSettings,
    OriginBudget,
    OriginEstimate,
    Reason,
    Uplinks,
)
from toast.policy.facts import Counts

FILM_RATE = float(GEOMETRY.piece_bytes)  # one second a piece
BEGUN = np.array([True, True, False, False])
FIRM = GiveUpSettings(doubt_seconds=0.0)


def uplinks(*, rate=FILM_RATE, queued=0.0, choking=False, silent=0.0, count=1, has=None):
    """So many alike."""
    return Uplinks(
        np.full(count, rate),
        np.full(count, float(queued)),
        np.full(count, choking),
        np.full(count, silent),
        np.ones((count, PIECES), np.bool_) if has is None else has,
    )


def later(seconds):
    """The film, so many seconds before its first piece is due."""
    return np.arange(PIECES, dtype=np.float64) + seconds


def pieces(decision):
    return [order.piece for order in decision.orders]


class TestWhatNeighboursCanBring:
    def decide(self, who, *, lead=math.inf, asked_of=None, slack=3.0, **known):
        decider = policy(give_up=FIRM, hand_over=HandOverSettings(parallel=20))
        known = facts(slack=later(slack), lead_seconds=lead, uplinks=who, **known)
        return decider.decide(known, all_blocks, asked_of=asked_of)

    def test_one_who_keeps_up_is_left_alone(self):
        assert self.decide(uplinks()).orders == []

    @pytest.mark.parametrize(
        "who",
        [
            uplinks(choking=True),
            uplinks(silent=5.0, queued=BLOCK_BYTES),
            uplinks(rate=FILM_RATE / 25),
        ],
        ids=["choking", "silent", "far too slow"],
    )
    def test_what_none_can_bring_is_fetched_as_if_nobody_had_it(self, who):
        """Slacks 3 to 8 are within `ahead_seconds`."""
        found = ordered(self.decide(who))

        assert found[-1] == (5, Reason.NO_SOURCE)
        assert len(found) >= 5

    def test_one_who_is_a_little_too_slow_brings_its_part(self):
        assert self.decide(uplinks(rate=FILM_RATE / 2)).orders == []

    def test_several_slow_ones_together_are_fast(self):
        assert self.decide(uplinks(rate=FILM_RATE / 25, count=30)).orders == []

    def test_a_block_asked_of_one_who_is_silent_holds_its_piece_up(self):
        who = Uplinks(
            np.full(2, 10 * FILM_RATE),
            np.full(2, float(BLOCK_BYTES)),
            np.zeros(2, np.bool_),
            np.array([0.0, 5.0]),
            np.ones((2, PIECES), np.bool_),
        )
        in_flight = mask("**")

        def asked_of(piece):
            return np.array([-1, piece, -1, -1])  # piece 0 of the one who sends, 1 of the other

        found = self.decide(who, in_flight=in_flight, asked_of=asked_of)
        assert ordered(found) == [(1, Reason.NO_SOURCE)]

    def test_what_is_all_asked_for_is_waited_for(self):
        found = self.decide(
            uplinks(rate=FILM_RATE / 25, has=np.zeros((1, PIECES), np.bool_)),
            in_flight=mask("*" * PIECES),
            asked_of=lambda _: np.zeros(4, np.intp),
        )
        assert found.orders == []

    def test_who_follows_a_neighbour_waits_for_it(self):
        assert pieces(self.decide(uplinks(choking=True), lead=4.5)) == [0, 1]

    def test_a_doubt_must_last_and_the_timer_knows(self):
        decider = policy(give_up=GiveUpSettings(doubt_seconds=1.0))
        known = {"slack": later(3.0), "uplinks": uplinks(choking=True)}

        first = decider.decide(facts(**known), all_blocks)
        assert first.orders == []
        assert first.wait_seconds == pytest.approx(1.0)
        assert decider.decide(facts(now=1.0, **known), all_blocks).orders != []

    def test_with_nobody_around_the_server_is_asked_somewhat_sooner(self):
        none = np.zeros(PIECES, np.int32)
        decider = policy(hand_over=HandOverSettings(parallel=20))
        known = facts(slack=later(3.0), availability=none, uplinks=Uplinks.none())

        assert pieces(decider.decide(known, all_blocks)) == list(range(8))


class TestPiecesUnderWay:
    """Two blocks of each piece under way are missing; the server needs 0.55 s."""

    def asked(self, who, slack, **changes):
        decider = policy(horizon=None, give_up=FIRM)
        known = facts(slack=later(slack), in_flight=mask("*"), uplinks=who, **changes)
        return decider.decide(known, lambda _: ~BEGUN, asked_of=lambda _: np.full(4, -1))

    def test_it_is_asked_for_as_long_as_a_block_would_come_before_the_hand_over(self):
        """A block takes 0.25 s behind half a second of queue, and perhaps half as long again."""
        who = uplinks(queued=FILM_RATE / 2)

        assert 0 in self.asked(who, 1.68).ranked
        late = self.asked(who, 1.67)
        assert 0 not in late.ranked
        assert late.orders == []

    def test_the_timer_knows_when_it_is_closed(self):
        decision = self.asked(uplinks(queued=FILM_RATE / 2), 1.775)

        assert decision.wait_seconds == pytest.approx(0.1, abs=1e-3)

    def test_what_was_closed_is_not_opened_by_a_rate_that_swings(self):
        decider = policy(give_up=FIRM)
        sides = []
        for rate in (1.0, 0.5, 1.5, 0.5, 1.5):
            who = uplinks(rate=rate * FILM_RATE, queued=FILM_RATE / 2)
            known = facts(slack=later(1.8), in_flight=mask("*"), uplinks=who)
            sides.append(0 in decider.decide(known, lambda _: ~BEGUN).ranked)

        assert sides == [True, False, False, False, False]

    def test_at_the_last_moment_what_is_missing_is_ordered(self):
        """Not more than that: what came stays."""
        (order,) = self.asked(uplinks(queued=FILM_RATE / 2), 0.5).orders

        assert order.blocks == ((2, 4),)
        assert order.reason is Reason.URGENT


class TestWaitingForAPicture:
    def test_a_start_at_a_remembered_place_is_told_apart(self):
        for known, reason in (
            ({"starting": True}, Reason.STARTUP),
            ({"starting": True, "resuming": True}, Reason.RESUME),
            ({"starting": True, "resuming": True, "seeking": True}, Reason.SEEK),
        ):
            assert policy().decide(facts(**known), all_blocks).orders[0].reason is reason

    def test_the_blocks_that_the_picture_needs_are_named_first(self):
        def first_blocks(piece):
            return np.array([False, False, True, False])

        waiting = policy().decide(facts(starting=True), all_blocks, first_blocks=first_blocks)
        assert waiting.orders[0].blocks == ((2, 3), (0, 2), (3, 4))
        playing = policy().decide(facts(), all_blocks, first_blocks=first_blocks)
        assert playing.orders[0].blocks == ((0, 4),)

    def test_more_is_fetched_at_a_time_for_it(self):
        slack = np.maximum(later(-9.0), 0.0)  # ten pieces are due

        assert len(policy().decide(facts(slack=slack, starting=True), all_blocks).orders) == 10
        assert len(policy().decide(facts(slack=slack), all_blocks).orders) == 2

    def test_what_is_due_later_takes_no_more_places_than_else(self):
        slack = np.maximum(later(-1.0), 0.0)
        nobody = np.zeros(PIECES, np.int32)
        known = facts(slack=slack, starting=True, availability=nobody)

        assert pieces(policy().decide(known, all_blocks)) == [0, 1]


class TestPaused:
    @pytest.mark.parametrize("who", [None, Uplinks.none()])
    def test_nothing_is_fetched_ahead(self, who):
        nobody = np.zeros(PIECES, np.int32)
        decider = policy(hand_over=HandOverSettings(parallel=20))
        known = facts(availability=nobody, slack=later(0.2), paused=True, uplinks=who)

        assert pieces(decider.decide(known, all_blocks)) == [0]

    def test_a_slow_server_fills_a_short_reserve_only(self):
        slow = OriginEstimate(rtt_seconds=60.0, rate=1e9, up=True)
        decider = policy(hand_over=HandOverSettings(parallel=20, paused_seconds=3.0))

        assert pieces(decider.decide(facts(origin=slow, paused=True), all_blocks)) == [0, 1, 2, 3]


def test_however_slow_the_server_it_is_asked_for_no_more_than_15_s():
    slow = OriginEstimate(rtt_seconds=60.0, rate=1e9, up=True)
    decider = policy(hand_over=HandOverSettings(parallel=99))

    assert pieces(decider.decide(facts(origin=slow), all_blocks)) == list(range(16))


class TestBudget:
    NOBODY = np.zeros(PIECES, np.int32)

    def decider(self, *, parallel=20, **settings):
        self.budget = OriginBudget(BudgetSettings(**settings), 0.0)
        return policy(hand_over=HandOverSettings(parallel=parallel), budget=self.budget)

    def test_what_is_ordered_is_charged(self):
        decider = self.decider(day_bytes=10**9)
        found = decider.decide(facts(availability=self.NOBODY), all_blocks)

        assert self.budget.spent_bytes == len(found.orders) * GEOMETRY.piece_bytes

    def test_as_it_gets_short_less_is_fetched_early(self):
        """Ahead are 8 s; half of the last quarter leaves 4."""
        decider = self.decider(day_bytes=80 * GEOMETRY.piece_bytes)
        self.budget.spend(0.0, 70 * GEOMETRY.piece_bytes)
        known = facts(availability=self.NOBODY, slack=later(2.0))

        assert pieces(decider.decide(known, all_blocks)) == [0, 1, 2]

    def test_what_is_needed_now_is_fetched_until_nothing_is_left(self):
        decider = self.decider(day_bytes=100 * GEOMETRY.piece_bytes)
        self.budget.spend(0.0, 99 * GEOMETRY.piece_bytes)
        slack = np.maximum(later(-3.0), 0.0)  # four are due

        found = decider.decide(facts(slack=slack), all_blocks)
        assert pieces(found) == [0]
        assert found.refused == {1, 2, 3}
        assert self.budget.allowance(0.0).bytes_left == 0

    def test_then_peers_are_asked_for_everything(self):
        decider = self.decider(day_bytes=0)
        found = decider.decide(facts(uplinks=uplinks()), all_blocks)

        assert found.orders == []
        assert found.ranked[0] == 0
        assert found.refused == {0}

    def test_while_the_server_is_away_nothing_is_refused(self):
        down = OriginEstimate(rtt_seconds=0.0, rate=1.0, up=False)
        found = self.decider(day_bytes=0).decide(facts(origin=down), all_blocks)

        assert found.refused == frozenset()

    def test_the_timer_knows_when_it_is_allowed_again(self):
        decider = self.decider(rate=FILM_RATE, burst_seconds=1.0)
        self.budget.spend(0.0, 2 * GEOMETRY.piece_bytes)

        found = decider.decide(facts(slack=later(0.0)), all_blocks)
        assert found.orders == []
        assert found.wait_seconds == pytest.approx(1.0, abs=0.02)
        assert decider.decide(facts(now=1.02), all_blocks).orders != []

    def test_over_a_day_it_is_never_exceeded(self):
        """A film of which peers bring nothing: it ends when the budget does."""
        decider = self.decider(day_bytes=int(7.5 * GEOMETRY.piece_bytes))
        have = np.zeros(PIECES, np.bool_)
        for second in range(PIECES):
            known = facts(
                now=float(second), have=have.copy(), slack=later(-second), availability=self.NOBODY
            )
            for order in decider.decide(known, all_blocks).orders:
                have[order.piece] = True

        assert have.sum() == 7
        assert self.budget.spent_bytes <= 7.5 * GEOMETRY.piece_bytes


@pytest.mark.parametrize("slack", [0.3, 3.0])
def test_numbers_at_hand_decide_as_flags_of_blocks_do(slack):
    """Piece 0 is half here, and one block of it is asked for."""

    def missing(piece):
        return ~BEGUN if piece == 0 else all_blocks(piece)

    def asked_of(piece):
        return np.array([-1, -1, 1, -1]) if piece == 0 else np.full(4, -1)

    def missing_size(piece):
        return BLOCK_BYTES * (2 if piece == 0 else 4)

    def unasked(piece):
        return (BLOCK_BYTES, [1]) if piece == 0 else (4 * BLOCK_BYTES, [])

    who = uplinks(rate=FILM_RATE / 30, queued=BLOCK_BYTES, count=2)
    known = facts(slack=later(slack), uplinks=who, in_flight=mask("*"))
    by_flags = policy(give_up=FIRM).decide(known, missing, asked_of=asked_of)
    by_numbers = policy(give_up=FIRM).decide(known, missing, counts=Counts(missing_size, unasked))

    assert by_flags.orders == by_numbers.orders != []
    assert by_flags.ranked == by_numbers.ranked
    assert by_flags.wait_seconds == by_numbers.wait_seconds
