"""The policies put together: one viewing's decisions, as the viewer and a simulator get them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.policy.budget import BudgetSettings, OriginBudget
from toast.policy.buffer import BufferDecision, Limited, Unlimited
from toast.policy.estimate import Uplinks
from toast.policy.facts import Facts
from toast.policy.handover import HandOverSettings, OriginEstimate, Reason
from toast.policy.lookahead import create_horizon
from toast.policy.pickers import create_picker
from toast.policy.viewing import ViewingPolicy, ViewingSettings

PIECES = 20
GEOMETRY = Geometry(PIECES * 4 * BLOCK_BYTES, 4 * BLOCK_BYTES)
UP = OriginEstimate(rtt_seconds=0.0, rate=1e9, up=True)
DOWN = OriginEstimate(rtt_seconds=0.0, rate=1.0, up=False)


class Full:
    """A buffer that has no room but for what the server is sending, and would delete two pieces."""

    name = "full"

    def decide(self, stock):
        return BufferDecision(np.array([7, 8]), stock.closed, suspend=True)


def policy(picker="in-order", *, buffer=None, horizon=None, budget=None, seed=5, **settings):
    return ViewingPolicy(
        GEOMETRY,
        float(PIECES),  # one second a piece
        picker=create_picker(picker),
        horizon=horizon or create_horizon("fixed", seconds=3.0),
        buffer=buffer or Unlimited(),
        settings=ViewingSettings(**settings),
        rng=np.random.default_rng(seed),
        budget=budget,
    )


def facts(**changes):
    """The film has begun; every piece is with one neighbour."""
    known = {
        "now": 0.0,
        "slack": np.arange(PIECES, dtype=np.float64),
        "have": np.zeros(PIECES, dtype=np.bool_),
        "closed": np.zeros(PIECES, dtype=np.bool_),
        "availability": np.ones(PIECES, dtype=np.int32),
        "in_flight": np.zeros(PIECES, dtype=np.bool_),
        "down_rate": 0.0,
        "queued_bytes": 0,
        "origin": UP,
        "lead_seconds": math.inf,
        "starting": False,
        "seeking": False,
    }
    return Facts(**known | changes)


def mask(picture):
    """`*` is true."""
    return np.array([sign == "*" for sign in picture.ljust(PIECES)])


def all_blocks(piece):
    return np.ones(4, dtype=np.bool_)


def ordered(decision):
    return [(order.piece, order.reason) for order in decision.orders]


def test_near_pieces_are_the_server_s_and_the_next_are_asked_of_peers():
    decision = policy().decide(facts(), all_blocks)
    assert ordered(decision) == [(0, Reason.URGENT)]
    assert decision.plan.top.tolist() == [3, 4, 5]  # two seconds of film, and one piece more
    assert decision.window == 3


def test_no_neighbour_idles_because_others_have_what_is_rarest():
    rare, common = mask("*" * 12), mask(" " * 12 + "*" * 8)

    def asked_of_the_common(*, choking):
        half = float(2 * BLOCK_BYTES)  # of the film's rate: two seconds of that, and a piece more
        known = facts(
            availability=np.where(rare, 1, 2).astype(np.int32),
            have=mask("*" * 4),
            slack=np.arange(PIECES) + 9.0,
            uplinks=Uplinks([half] * 2, [0.0] * 2, [False, choking], [0.0] * 2, [rare, common]),
        )
        plan = policy("rarest-first").decide(known, all_blocks).plan
        assert rare[plan.top].all()
        return int(common[plan.open].sum())

    assert asked_of_the_common(choking=False) == 2
    assert asked_of_the_common(choking=True) == 0, "who takes no requests is given nothing"


def test_while_the_server_is_away_nothing_is_given_up():
    decision = policy().decide(facts(origin=DOWN), all_blocks)
    assert decision.orders == []
    assert decision.plan.top.tolist() == [0, 1, 2]
    assert decision.wait_seconds == math.inf


def test_what_nobody_has_is_fetched_ahead_by_who_watches_foremost():
    alone = facts(availability=np.zeros(PIECES, dtype=np.int32), slack=np.arange(PIECES) + 5.0)
    settings = HandOverSettings(ahead_seconds=8.0, parallel=4)
    decision = policy(hand_over=settings).decide(alone, all_blocks)
    assert ordered(decision) == [(piece, Reason.NO_SOURCE) for piece in range(4)]


def test_what_was_given_up_is_fetched_though_it_is_not_due_for_long():
    """Whoever comes behind can then have it of us. What is under way still has its chance."""
    begun, decider, found = np.arange(PIECES) == 1, policy(), []
    for now in (0.0, 1.0, 2.0, 2.5):
        known = facts(now=now, slack=np.arange(PIECES) + 3.6 - now, in_flight=begun)
        found.append(ordered(decider.decide(known, all_blocks)))
    assert found == [[], [], [], [(0, Reason.NO_SOURCE)]]


@pytest.mark.parametrize(("lead", "count"), [(0.0, 0), (5.5, 1), (6.5, 2)])
def test_who_follows_lets_the_one_ahead_fetch_it_first(lead, count):
    nobody = np.zeros(PIECES, dtype=np.int32)
    behind = facts(availability=nobody, slack=np.arange(PIECES) + 5.0, lead_seconds=lead)
    decision = policy(hand_over=HandOverSettings(parallel=4)).decide(behind, all_blocks)
    assert len(decision.orders) == count


def test_what_nobody_has_yet_is_wanted_when_it_comes():
    availability = np.ones(PIECES, dtype=np.int32)
    availability[10:] = 0
    decision = policy().decide(facts(availability=availability), all_blocks)
    assert decision.coming.tolist() == [10, 11, 12]
    assert decision.ranked[-3:] == [10, 11, 12]


def test_a_faster_swarm_opens_a_wider_window():
    decider = policy()
    rate = 4.0 * GEOMETRY.piece_bytes
    assert decider.decide(facts(down_rate=rate), all_blocks).window == 9


def test_a_full_buffer_asks_nobody_for_anything_and_says_what_must_go():
    decision = policy(buffer=Full()).decide(facts(), all_blocks)
    assert decision.ranked == []
    assert decision.orders == []
    assert decision.eject.tolist() == [7, 8]
    assert not decision.view.missing.any()


def test_a_limited_buffer_bounds_what_is_asked_of_peers_and_of_the_server():
    slack = np.arange(PIECES, dtype=np.float64)
    decision = policy("rarest-first", buffer=Limited(6)).decide(facts(slack=slack), all_blocks)
    assert max(decision.ranked) < 6
    assert all(order.piece < 6 for order in decision.orders)


@pytest.mark.parametrize(("seeking", "reason"), [(False, Reason.STARTUP), (True, Reason.SEEK)])
def test_why_the_first_pieces_are_fetched(seeking, reason):
    decision = policy().decide(facts(starting=True, seeking=seeking), all_blocks)
    assert ordered(decision)[0] == (0, reason)


def test_it_holds_until_the_next_piece_falls_to_the_server():
    held = facts(have=mask("*"), slack=np.arange(PIECES) + 0.25)
    decision = policy(hand_over=HandOverSettings(margin_seconds=0.45)).decide(held, all_blocks)
    assert decision.orders == []
    assert decision.wait_seconds == pytest.approx(0.75, abs=0.01)


def test_the_same_facts_and_chance_give_the_same_decisions():
    for name in ("in-order", "rarest-first", "beta", "hybrid"):
        first, second = (policy(name).decide(facts(), all_blocks) for _ in range(2))
        assert first.ranked == second.ranked


@pytest.mark.parametrize(
    ("changes", "widened"),
    [
        ({}, True),  # three pieces go to the server, and nothing is asked of anybody
        ({"queued_bytes": 1}, False),
        ({"paused": True}, False),
        ({"starting": True}, False),
        ({"have": mask("***")}, False),
        ({"uplinks": Uplinks.none()}, False),
        ({"origin": DOWN}, False),
    ],
)
def test_who_starves_behind_the_closest_wants_somebody_further_ahead(changes, widened):
    decider = policy(hand_over=HandOverSettings(margin_seconds=0.5))
    for now in range(10):
        decider.decide(facts(now=float(now), **changes), all_blocks)
    assert decider.need_seconds == (6.0 if widened else 0.0)


def test_who_watches_with_others_fetches_its_share_long_before():
    """Nobody has anything: each of nine draws for pieces that are due in 20 s to 40 s."""
    nobody = np.zeros(PIECES, dtype=np.int32)
    known = facts(availability=nobody, slack=np.arange(PIECES) + 20.0, lead_seconds=0.3)
    settings = HandOverSettings(parallel=PIECES)
    shares = [
        ordered(
            policy(hand_over=settings, seed=seed).decide(replace(known, together=9), all_blocks)
        )
        for seed in range(9)
    ]
    pieces = [piece for share in shares for piece, _ in share]
    assert {reason for share in shares for _, reason in share} == {Reason.NO_SOURCE}
    assert 0.5 * PIECES < len(pieces) < 3 * PIECES, "of nine times all"
    assert len(set(pieces)) > len(pieces) / 3
    for change in ({"together": 1}, {"together": 9, "paused": True}):
        decision = policy(hand_over=settings).decide(replace(known, **change), all_blocks)
        assert decision.orders == []


def test_a_server_that_may_give_little_is_not_asked_long_before():
    short = OriginBudget(BudgetSettings(rate=GEOMETRY.piece_bytes), 0.0)
    nobody = np.zeros(PIECES, dtype=np.int32)
    known = facts(availability=nobody, slack=np.arange(PIECES) + 20.0, together=9)
    short.spend(0.0, 16 * GEOMETRY.piece_bytes)
    settings = HandOverSettings(parallel=PIECES)
    assert policy(hand_over=settings).decide(known, all_blocks).orders
    assert policy(hand_over=settings, budget=short).decide(known, all_blocks).orders == []
