"""Playhead, horizon, picker and hand-over joined in a few lines: one viewer, simulated."""

import math

import numpy as np
import pytest

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.common.timemap import TimeMap
from toast.policy import (
    HandOverSettings,
    OriginEstimate,
    Playhead,
    Reason,
    State,
    SwarmView,
    Terms,
    create_horizon,
    create_picker,
    due_orders,
    make_plan,
    next_order_in,
    picker_names,
)
from toast.policy.handover import missing_bytes

BLOCKS = 4
PIECE = BLOCKS * BLOCK_BYTES
PIECES, SECONDS = 60, 60.0
FILM_RATE = PIECES * PIECE / SECONDS


class OneViewer:
    """A film of a second per piece, one neighbour who has some of it, and an origin.

    Both links send one thing after the other. The neighbour is asked for the first piece of the
    plan that it has, and sends it block by block.
    """

    def __init__(self, *, offered, peer_rate, origin_rate, picker="in-order", rtt=0.05, seed=0):
        self.geometry = Geometry(PIECES * PIECE, PIECE)
        self.timemap = TimeMap.constant(PIECES * PIECE, SECONDS)
        self.playhead = Playhead(self.timemap, self.geometry, 0.0)
        self.offered, self.peer_rate = offered, peer_rate
        self.way = OriginEstimate(rtt, origin_rate, up=True)
        self.rules = HandOverSettings()
        self.picker, self.rule = create_picker(picker), create_horizon("transfer")
        self.rng = np.random.default_rng(seed)
        self.have = np.zeros(PIECES, bool)
        self.closed = np.zeros(PIECES, bool)
        self.blocks = np.zeros((PIECES, BLOCKS), bool)
        self.fetches, self.orders = [], []  # (when it is here, order); every order
        self.block_at, self.asked, self.link_free = math.inf, None, 0.0
        self.plan = None
        self.from_origin = self.from_peer = self.wasted = 0

    def view(self, now):
        in_flight = np.zeros(PIECES, bool)
        if self.asked is not None:
            in_flight[self.asked] = True
        return SwarmView(
            slack=self.playhead.slack(now),
            missing=~self.have,
            availability=self.offered.astype(np.int32),
            in_flight=in_flight,
            closed=self.closed.copy(),
            horizon=self.rule.horizon(
                piece_bytes=PIECE,
                film_rate=FILM_RATE,
                peer_rate=self.peer_rate or None,
                queued_bytes=0,
                hand_over_seconds=self.way.rtt_seconds + self.rules.margin_seconds,
            ),
            playhead_piece=0,
            seconds_per_piece=SECONDS / PIECES,
        )

    def left(self, piece):
        return missing_bytes(self.geometry, piece, self.missing(piece))

    def missing(self, piece):
        return ~self.blocks[piece]

    def arrive(self, now):
        """Let come what is due by now."""
        for fetch in [f for f in self.fetches if f[0] <= now]:
            self.fetches.remove(fetch)
            piece = fetch[1].piece
            self.blocks[piece], self.have[piece], self.closed[piece] = True, True, False
            if self.asked == piece:
                self.asked, self.block_at = None, math.inf
        if self.block_at <= now:
            block = int(np.argmin(self.blocks[self.asked]))
            self.wasted += BLOCK_BYTES if self.closed[self.asked] else 0
            self.from_peer += BLOCK_BYTES
            self.blocks[self.asked, block] = True
            self.block_at += BLOCK_BYTES / self.peer_rate
            if self.blocks[self.asked].all():
                self.have[self.asked] = True
                self.asked, self.block_at = None, math.inf

    def step(self, now):
        """Decide, and say when to look again."""
        self.arrive(now)
        self.playhead.tick(now, self.have)
        view = self.view(now)
        started = self.playhead.start_seconds is not None
        terms = Terms(waiting=None if started else Reason.STARTUP)
        for order in due_orders(view, self.missing, self.geometry, self.way, self.rules, terms):
            size = sum(end - start for start, end in order.blocks) * BLOCK_BYTES
            begin = max(now + self.way.rtt_seconds, self.link_free)
            self.link_free = begin + size / self.way.rate
            self.fetches.append((self.link_free, order))
            self.orders.append(order)
            self.from_origin += size
            self.closed[order.piece] = True
            if self.asked == order.piece:
                self.asked, self.block_at = None, math.inf
        view = self.view(now)
        self.plan = make_plan(self.picker, view, self.rng, top=3, previous=self.plan)
        if self.asked is None and self.plan.top.size and self.peer_rate:
            self.asked = int(self.plan.top[0])
            self.block_at = now + BLOCK_BYTES / self.peer_rate
        return min(
            *(when for when, _ in self.fetches),
            self.block_at,
            now + self.playhead.next_event(now, self.have),
            now + next_order_in(view, self.geometry, self.way, self.rules, terms, self.left),
            math.inf,
        )

    def watch(self):
        now = 0.0
        for _ in range(5000):
            after = self.step(now)
            if self.playhead.state is State.ENDED:
                return self
            assert math.isfinite(after), "nothing will ever happen again"
            now = max(after, now) + 1e-7
        raise AssertionError("the timers spin")


def test_the_origin_alone_carries_the_film_without_a_stall():
    viewer = OneViewer(offered=np.zeros(PIECES, bool), peer_rate=0.0, origin_rate=2 * FILM_RATE)
    viewer.watch()

    assert viewer.playhead.stalls == 0
    assert viewer.playhead.start_seconds == pytest.approx(0.05 + 0.5, abs=0.01)
    assert viewer.from_origin == PIECES * PIECE
    assert viewer.orders[0].reason is Reason.STARTUP
    assert {o.reason for o in viewer.orders[1:]} == {Reason.NO_SOURCE}


@pytest.mark.parametrize("picker", picker_names())
def test_a_fast_neighbour_leaves_the_origin_little_to_do(picker):
    viewer = OneViewer(
        offered=np.ones(PIECES, bool),
        peer_rate=4 * FILM_RATE,
        origin_rate=20 * FILM_RATE,
        picker=picker,
    ).watch()

    share = viewer.from_origin / (PIECES * PIECE)
    assert viewer.playhead.stalls == 0
    assert share < (0.1 if picker in ("in-order", "hybrid") else 0.4)


@pytest.mark.parametrize("picker", picker_names())
def test_a_slow_neighbour_never_stops_the_film_and_little_of_its_work_is_lost(picker):
    viewer = OneViewer(
        offered=np.ones(PIECES, bool),
        peer_rate=FILM_RATE / 2,
        origin_rate=5 * FILM_RATE,
        picker=picker,
    ).watch()

    assert viewer.playhead.stalls == 0
    assert viewer.wasted == 0
    assert viewer.have.all()
    # What came from the neighbour is not fetched again: all of it was used.
    assert viewer.from_peer + viewer.from_origin == pytest.approx(PIECES * PIECE, rel=0.02)
    assert viewer.from_peer > 0.3 * PIECES * PIECE


def test_each_piece_is_ordered_once():
    viewer = OneViewer(
        offered=np.arange(PIECES) % 3 > 0, peer_rate=FILM_RATE / 3, origin_rate=3 * FILM_RATE
    ).watch()

    pieces = [o.piece for o in viewer.orders]
    assert len(set(pieces)) == len(pieces)
    assert viewer.playhead.stalls == 0


def test_an_origin_as_slow_as_the_film_is_asked_in_time():
    """It needs as long for a piece as the piece plays: orders must not wait for each other."""
    viewer = OneViewer(
        offered=np.zeros(PIECES, bool), peer_rate=0.0, origin_rate=1.05 * FILM_RATE, rtt=0.01
    ).watch()

    assert viewer.playhead.stalls <= 1
    assert viewer.playhead.stall_seconds(1e9) < 0.5


def test_a_seek_far_ahead_is_served_by_the_origin_at_once():
    viewer = OneViewer(offered=np.zeros(PIECES, bool), peer_rate=0.0, origin_rate=10 * FILM_RATE)
    now = viewer.step(0.0)
    while now < 3.0:
        now = viewer.step(now) + 1e-7
    viewer.playhead.seek(now, 40.5)
    while viewer.playhead.state is not State.ENDED:
        now = max(now, viewer.step(now)) + 1e-7

    assert viewer.playhead.stalls == 0
    # The two pieces that were being fetched for the old place came first.
    assert viewer.playhead.seek_seconds[0] < 0.05 + 3 * 0.1 + 0.02
    assert not viewer.have[20:40].any()
