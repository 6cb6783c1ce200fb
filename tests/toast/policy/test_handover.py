import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.check_picker import make_view, views
from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.policy.handover import (
    HandOverSettings,
    OriginEstimate,
    Reason,
    Terms,
    due_orders,
    make_order,
    missing_bytes,
    next_order_in,
)

BLOCKS = 4
PIECE = BLOCKS * BLOCK_BYTES
FAST = OriginEstimate(rtt_seconds=0.1, rate=1e9, up=True)
SLOW = OriginEstimate(rtt_seconds=0.1, rate=float(PIECE), up=True)  # a second per piece
MANY = HandOverSettings(margin_seconds=0.4, verification_seconds=0.1, parallel=100)


def geometry(pieces):
    return Geometry(pieces * PIECE, PIECE)


def missing_from(pictures=None):
    """Piece -> its missing blocks; pictures show what is here: {3: "** *"}."""

    def missing(piece):
        picture = (pictures or {}).get(piece, "")
        return np.array([c != "*" for c in picture.ljust(BLOCKS)])

    return missing


def orders(view, pictures=None, *, estimate=FAST, settings=MANY, **terms):
    cut = geometry(view.missing.size)
    return due_orders(view, missing_from(pictures), cut, estimate, settings, Terms(**terms))


def wait(view, pictures=None, *, estimate=FAST, settings=MANY, **terms):
    cut = geometry(view.missing.size)
    missing = missing_from(pictures)
    return next_order_in(
        view,
        cut,
        estimate,
        settings,
        Terms(**terms),
        lambda piece: missing_bytes(cut, piece, missing(piece)),
    )


class TestMakeOrder:
    @pytest.mark.parametrize(
        ("here", "ranges"),
        [
            ("    ", ((0, 4),)),
            ("*  *", ((1, 3),)),
            (" ** ", ((0, 1), (3, 4))),
            ("* * ", ((1, 2), (3, 4))),
            ("****", ()),
        ],
    )
    def test_only_missing_blocks_are_named(self, here, ranges):
        missing = missing_from({0: here})(0)

        assert make_order(0, missing, Reason.POISONED, 1.0).blocks == ranges


class TestDueOrders:
    def test_a_piece_passes_over_when_the_origin_needs_all_the_time_left(self):
        """A round trip of 0.1 s and the margin of 0.5 s: at 0.6 s of slack, not at 1 s."""
        near = make_view("1111", playhead=0, seconds_per_piece=0.59)
        far = make_view("1111", "*", playhead=0, seconds_per_piece=1.0)

        assert [o.piece for o in orders(near)] == [0, 1]
        assert orders(far) == []

    def test_the_transfer_itself_takes_time(self):
        view = make_view("11111", "*", seconds_per_piece=1.5)

        assert [o.piece for o in orders(view, estimate=SLOW)] == [1]

    def test_fewer_missing_blocks_leave_more_time(self):
        view = make_view("11111", "*", seconds_per_piece=1.5)

        assert orders(view, {1: "*** "}, estimate=SLOW) == []

    def test_what_is_ordered_first_is_sent_first(self):
        """Each needs one second to send: the second is ordered though 2.5 s remain."""
        view = make_view("11111", "*", seconds_per_piece=1.25)
        alone = make_view("11111", "**", seconds_per_piece=1.25)

        assert [o.piece for o in orders(view, estimate=SLOW)] == [1, 2]
        assert orders(alone, estimate=SLOW) == []

    def test_what_is_being_fetched_already_is_sent_first(self):
        view = make_view("11111", "*", closed=" x", seconds_per_piece=1.25)

        assert [o.piece for o in orders(view, estimate=SLOW)] == [2]

    def test_the_earliest_due_goes_first(self):
        view = make_view("1111", playhead=0, seconds_per_piece=0.1)
        view.slack[:] = [0.3, 0.1, 0.2, 0.4]

        assert [o.piece for o in orders(view)] == [1, 2, 0, 3]
        assert [o.slack for o in orders(view)] == [0.1, 0.2, 0.3, 0.4]

    def test_what_nobody_has_is_fetched_a_while_ahead(self):
        view = make_view("1" * 5 + "0" * 15, "*")

        found = orders(view)
        assert [(o.piece, o.reason) for o in found] == [
            (5, Reason.NO_SOURCE),
            (6, Reason.NO_SOURCE),
            (7, Reason.NO_SOURCE),
            (8, Reason.NO_SOURCE),
        ]

    def test_what_the_lot_says_is_fetched_long_before_if_nobody_has_it(self):
        view = make_view("0" * 12 + "1" * 2 + "0" * 26, "*" * 12)
        drawn = np.zeros(40)
        drawn[[12, 20, 30]] = [30.0, 20.0, 20.0]
        terms = {"ahead_seconds": 0.0, "drawn": drawn}

        assert [(o.piece, o.reason) for o in orders(view, **terms)] == [(20, Reason.NO_SOURCE)]
        assert orders(view, **terms, most_ahead_seconds=5.0) == orders(view, **terms)
        assert wait(view.closing([20]), **terms) == pytest.approx(30.0 - 20.0)

    def test_lots_do_not_have_a_slow_server_asked_for_what_others_have(self):
        view = make_view("1" * 40, "*" * 4)
        slow = replace(SLOW, rate=PIECE / 30)
        found = orders(view, estimate=slow, drawn=np.full(40, 39.0))

        assert max(order.slack for order in found) == 15.0
        assert {order.reason for order in found} == {Reason.URGENT}

    def test_what_is_under_way_has_a_source_even_if_the_neighbour_no_longer_tells(self):
        assert orders(make_view("0" * 6, "*", in_flight=" xxxxx")) == []

    def test_before_the_start_what_is_due_is_fetched_at_once(self):
        view = make_view("1111", seconds_per_piece=5.0)

        assert [(o.piece, o.reason) for o in orders(view, waiting=Reason.STARTUP)] == [
            (0, Reason.STARTUP)
        ]
        seeking = orders(view, waiting=Reason.SEEK)
        assert [o.reason for o in seeking] == [Reason.SEEK]
        assert [o.reason for o in orders(view)] == [Reason.URGENT]

    def test_only_so_many_at_a_time(self):
        view = make_view("0" * 9, closed="x")
        two = HandOverSettings(parallel=2)

        assert [o.piece for o in orders(view, settings=two)] == [1]
        assert orders(make_view("0" * 9, closed="xx"), settings=two) == []
        assert wait(make_view("0" * 9, closed="xx"), settings=two) == math.inf

    def test_a_closed_piece_that_has_come_takes_no_place(self):
        view = make_view("0" * 9, "**", closed="xx")

        assert len(orders(view, settings=HandOverSettings(parallel=2))) == 2

    def test_nothing_is_ordered_of_an_origin_that_is_down(self):
        down = OriginEstimate(0.1, 1e9, up=False)

        assert orders(make_view("000"), estimate=down) == []
        assert wait(make_view("000"), estimate=down) == math.inf

    def test_a_piece_all_of_whose_blocks_are_here_is_being_checked(self):
        assert [o.piece for o in orders(make_view("000"), {0: "****"})] == [1, 2]

    def test_what_is_not_asked_of_peers_any_more_does_not_wait_until_it_is_due(self):
        view = make_view("1" * 9, "*", seconds_per_piece=1.5)
        terms = {"ahead_seconds": 0.0, "settled": {2, 8}}

        assert [(o.piece, o.reason) for o in orders(view, **terms)] == [(2, Reason.NO_SOURCE)]
        assert orders(view, **terms, settled_seconds=2.9) == []
        assert wait(view, **terms, settled_seconds=2.9) == pytest.approx(3.0 - 2.9)
        assert orders(view, **terms, most_ahead_seconds=2.9) == []

    def test_what_lies_behind_the_playhead_is_left(self):
        assert [o.piece for o in orders(make_view("0" * 4, playhead=2))] == [2, 3]


class TestNextOrderIn:
    def test_the_time_until_the_origin_needs_all_that_is_left(self):
        view = make_view("1" * 30, "*", seconds_per_piece=2.0)

        assert wait(view) == pytest.approx(2.0 - 0.6, abs=1e-3)
        assert wait(view, estimate=SLOW) == pytest.approx(2.0 - 1.6)
        assert wait(view, {1: "**"}, estimate=SLOW) == pytest.approx(2.0 - 1.1)

    def test_the_time_until_what_nobody_has_comes_near(self):
        view = make_view("1" * 5 + "0" * 30, "*" * 5, seconds_per_piece=2.0)

        assert wait(view) == pytest.approx(10.0 - 8.0)

    def test_never_if_nothing_is_missing(self):
        assert wait(make_view("111", "***")) == math.inf

    def test_without_the_blocks_it_is_early_but_does_not_spin(self):
        view = make_view("1" * 5, "*", seconds_per_piece=1.2)
        early = next_order_in(view, geometry(5), SLOW, MANY, Terms())

        assert early == 0.02
        assert wait(view, {1: "*** ", 2: "*** "}, estimate=SLOW) == pytest.approx(1.2 - 0.85)


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(
    views(most=20),
    st.builds(OriginEstimate, st.floats(0, 2), st.floats(0.1, 1e9), st.just(True)),
    st.integers(0, 6),
    st.booleans(),
    st.data(),
)
def test_orders_are_lawful_and_the_timer_agrees_with_them(view, way, parallel, started, data):
    count = view.missing.size
    if not count:
        return
    pictures = {p: data.draw(st.text("* ", min_size=4, max_size=4)) for p in range(count)}
    rules = HandOverSettings(parallel=parallel, parallel_waiting=parallel)
    terms = {"waiting": None if started else Reason.STARTUP}
    found = orders(view, pictures, estimate=way, settings=rules, **terms)

    pieces = [o.piece for o in found]
    assert len(set(pieces)) == len(pieces)
    assert [o.slack for o in found] == sorted(o.slack for o in found)
    assert len(found) + np.count_nonzero(view.closed & view.missing) <= max(
        parallel, np.count_nonzero(view.closed & view.missing)
    )
    for order in found:
        assert view.missing[order.piece]
        assert not view.closed[order.piece]
        blocks = {b for start, end in order.blocks for b in range(start, end)}
        assert blocks == {b for b, c in enumerate(pictures[order.piece]) if c != "*"}
        assert blocks
        nobody = view.availability[order.piece] == 0 and not view.in_flight[order.piece]
        assert {Reason.NO_SOURCE: nobody, Reason.URGENT: not nobody}.get(order.reason, True)

    # Once these are ordered nothing else is due, and the timer has a moment of its own.
    closed = view.closed.copy()
    closed[pieces] = True
    view = replace(view, closed=closed)
    later = wait(view, pictures, estimate=way, settings=rules, **terms)
    again = orders(view, pictures, estimate=way, settings=rules, **terms)
    assert again == []
    assert later > 0
    if math.isfinite(later):
        view = replace(view, slack=view.slack - (later + 1e-6))
        at_last = orders(view, pictures, estimate=way, settings=rules, **terms)
        assert at_last, "the timer went off and nothing was due"
