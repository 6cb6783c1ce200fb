"""All decisions of one viewing at one moment: what to ask of peers, and what of the server.

The policies of this room are put together here, and nowhere else, so that the viewer and a
simulator that hand in the same facts get the same decisions.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.policy.budget import Allowance, OriginBudget
from toast.policy.buffer import Buffer, Stock, Unlimited
from toast.policy.estimate import AskedOf, EstimateSettings, Prospects, Unasked
from toast.policy.facts import Counts, Facts
from toast.policy.giveup import GiveUp, GiveUpSettings
from toast.policy.handover import (
    Blocks,
    HandOverSettings,
    MissingBlocks,
    MissingBytes,
    Order,
    Terms,
    due_orders,
    next_order_in,
)
from toast.policy.lead import Lead, LeadSettings
from toast.policy.lookahead import HorizonRule, PeerRate
from toast.policy.lots import Lots, LotSettings
from toast.policy.pickers import Picker, make_plan
from toast.policy.pickers.base import Holding, rank_best
from toast.policy.view import Plan, SwarmView

__all__ = ["Decision", "ViewingPolicy", "ViewingSettings"]

_NOTHING: NDArray[np.intp] = np.empty(0, np.intp)
_PLENTY = Allowance()


@dataclass(frozen=True, slots=True)
class ViewingSettings:
    """How the policies are put together."""

    window_seconds: float = 2.0
    """How much of the film is asked for first ("top"), beyond what is on its way."""
    hand_over: HandOverSettings = field(default_factory=HandOverSettings)
    """When the server must supply a piece."""
    estimate: EstimateSettings = field(default_factory=EstimateSettings)
    """What is expected of neighbours."""
    give_up: GiveUpSettings = field(default_factory=GiveUpSettings)
    """When a piece is no longer asked of them."""
    lead: LeadSettings = field(default_factory=LeadSettings)
    """How far ahead of us whoever feeds us should watch."""
    lots: LotSettings = field(default_factory=LotSettings)
    """Who fetches what, of those who watch the same moment."""


# Not frozen: to make a frozen one takes several times as long, once per decision.
@dataclass(eq=False, slots=True)
class Decision:
    """What to do now.

    Attributes:
        view: what it was decided on.
        plan: what to ask of peers.
        coming: intp[n], pieces that nobody has yet and that are wanted the moment somebody does.
        window: how many pieces the plan puts at its top, beyond those under way.
        orders: what to fetch from the server, first things first.
        wait_seconds: how long this holds if nothing happens.
        order_seconds: until something more must be ordered if nothing happens.
        refused: pieces that the server had to supply now, were its budget not spent.
        eject: intp[n], pieces to delete before anything is asked for.
    """

    view: SwarmView
    plan: Plan
    coming: NDArray[np.intp]
    window: int
    orders: list[Order]
    wait_seconds: float
    order_seconds: float = math.inf
    refused: frozenset[int] = frozenset()
    eject: NDArray[np.intp] = field(default_factory=lambda: _NOTHING)

    @property
    def ranked(self) -> list[int]:
        """All pieces wanted of peers, best first."""
        ranked: list[int] = np.concatenate((self.plan.top, self.plan.open, self.coming)).tolist()
        return ranked


class ViewingPolicy:
    """Picker, horizon, hand-over and buffer of one viewing.

    Args:
        geometry: how the film is cut.
        film_seconds: how long it is.
        picker: ranks what peers should bring.
        horizon: gives up what they cannot bring in time.
        buffer: bounds what is kept.
        settings: see `ViewingSettings`.
        rng: all chance.
        budget: bounds what the server is asked for; None: no bound. Charged for what is ordered.
        wanted: bool[P], what is stored at all: the rest counts as had, and is not; None: all is.
    """

    def __init__(
        self,
        geometry: Geometry,
        film_seconds: float,
        *,
        picker: Picker,
        horizon: HorizonRule,
        buffer: Buffer,
        settings: ViewingSettings,
        rng: np.random.Generator,
        budget: OriginBudget | None = None,
        wanted: NDArray[np.bool_] | None = None,
    ) -> None:
        self._geometry = geometry
        pieces = geometry.pieces if wanted is None else int(np.count_nonzero(wanted))
        self._piece_seconds = film_seconds / max(1, pieces)
        self._film_rate = geometry.film_bytes * (pieces / geometry.pieces) / film_seconds
        self._picker = picker
        self._horizon = horizon
        self._buffer = buffer
        self._settings = settings
        self._rng = rng
        self._budget = budget
        self._stored = True if wanted is None else wanted
        self._peer_rate = PeerRate()
        self._rate: float | None = None
        self._give_up = GiveUp(settings.give_up)
        near = self._piece_seconds + settings.hand_over.margin_seconds
        self._lead = Lead(near, self._piece_seconds, settings.lead)
        self._plan = Plan(_NOTHING, _NOTHING)
        self._lots: Lots | None = None

    @property
    def need_seconds(self) -> float:
        """How far ahead of us someone must watch to have in time what we will need."""
        return self._lead.seconds

    def decide(
        self,
        facts: Facts,
        missing_blocks: MissingBlocks,
        *,
        asked_of: AskedOf | None = None,
        first_blocks: Blocks | None = None,
        counts: Counts | None = None,
    ) -> Decision:
        """What to do now.

        Args:
            facts: what is known.
            missing_blocks: bool[B] of a piece: its blocks that are not here.
            asked_of: of a piece in flight, whom each block was asked of; None if nobody knows.
            first_blocks: bool[B] of a piece: its blocks that a waiting picture needs.
            counts: the first two in numbers, from who has them at hand; None: they are counted.
        """
        counts = counts or Counts.counting(self._geometry, missing_blocks, asked_of)
        eject, have = self._room(facts)
        allowance = _PLENTY if self._budget is None else self._budget.allowance(facts.now)
        # A server that may not be asked for a piece is as good as away: peers are asked for all.
        supplied = facts.origin.up and allowance.bytes_left >= self._geometry.piece_bytes
        prospects = None
        if facts.uplinks is not None:
            prospects = Prospects(facts.uplinks, self._film_rate, self._settings.estimate)
        self._note_rate(facts, prospects)
        view = self._view(facts, have, supplied)
        terms = self._terms(facts, allowance, first_blocks)
        if prospects is not None:
            doubted = self._doubted(view, terms, prospects, counts.unasked)
            believed = self._give_up.believed(facts.now, doubted)
            terms.hopeless = believed
        late, wait = self._late(facts, view, terms, prospects, counts.missing)
        self._give_up.update(view.slack, view.missing, late, view.horizon)
        terms.settled = self._give_up.settled(facts.now, view.in_flight)
        starving = self._is_starving(facts, view)
        self._lead.observe(facts.now, starving=starving, horizon=view.horizon)
        asked = view.closing(self._give_up.given_up)
        window = self._window()
        self._plan = make_plan(
            self._picker,
            asked,
            self._rng,
            top=window,
            open_=window,
            previous=self._plan,
            holdings=[] if prospects is None else self._holdings(prospects),
        )
        coming = self._coming(asked, window)
        orders, refused, next_order = self._hand_over(
            facts, view, terms, missing_blocks, counts.missing
        )
        wait = min(wait, next_order, self._give_up.next_belief_in(facts.now))
        wait = min(wait, self._give_up.next_settled_in(facts.now))
        if allowance.wait_seconds > 0:
            wait = min(wait, allowance.wait_seconds)
        return Decision(asked, self._plan, coming, window, orders, wait, next_order, refused, eject)

    def _room(self, facts: Facts) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """What is to be deleted, and what is not wanted: it is here, or there is no room for it."""
        if isinstance(self._buffer, Unlimited):
            return _NOTHING, facts.have
        passed = np.zeros_like(facts.slack) if facts.passed is None else facts.passed
        coming = (facts.in_flight | facts.closed) & ~facts.have
        held = facts.have & self._stored
        stock = Stock(facts.slack, passed, held, coming, facts.closed & coming, facts.availability)
        room = self._buffer.decide(stock)
        # What there is no room for is not wanted: neither of peers nor of the server.
        return room.eject, facts.have | ~room.admit

    def _view(self, facts: Facts, have: NDArray[np.bool_], supplied: bool) -> SwarmView:
        missing = ~have
        view = SwarmView(
            slack=facts.slack,
            missing=missing,
            availability=facts.availability,
            in_flight=facts.in_flight & missing,
            closed=facts.closed,
            horizon=self._horizon_of(facts, supplied),
            playhead_piece=0,
            seconds_per_piece=self._piece_seconds,
        )
        near = view.near().pieces
        view.playhead_piece = (
            near[0] if near else int(np.where(missing, facts.slack, np.inf).argmin())
        )
        return view

    def _note_rate(self, facts: Facts, prospects: Prospects | None) -> None:
        """How fast peers send, all together: None until some did."""
        if prospects is None:
            busy = bool(facts.in_flight.any())
            self._peer_rate.observe(facts.now, facts.down_rate, busy=busy)
            self._rate = self._peer_rate.value
        else:
            self._rate = prospects.rate

    def _horizon_of(self, facts: Facts, supplied: bool) -> float:
        if not supplied:
            return -math.inf  # nobody else can bring it: late is better than never
        return self._horizon.horizon(
            piece_bytes=self._geometry.piece_bytes,
            film_rate=self._film_rate,
            peer_rate=self._rate,
            queued_bytes=facts.queued_bytes,
            hand_over_seconds=self._hand_over_seconds(facts, self._geometry.piece_bytes),
        )

    @staticmethod
    def _is_starving(facts: Facts, view: SwarmView) -> bool:
        """Whether neighbours are there, asked for nothing, and pieces are left to the server."""
        if facts.paused or facts.starting or facts.queued_bytes:
            return False
        alone = facts.uplinks is not None and not len(facts.uplinks.rates)
        if alone:
            return False
        slack = view.near().slack
        ahead = bisect_right(slack, 0.0)
        return ahead < len(slack) and slack[ahead] < view.horizon

    def _hand_over_seconds(self, facts: Facts, size: float) -> float:
        """What the server needs to supply so many bytes in time."""
        settings = self._settings.hand_over
        seconds = facts.origin.rtt_seconds + size / max(facts.origin.rate, 1.0)
        return seconds + settings.verification_seconds + settings.margin_seconds

    def _window(self) -> int:
        """Pieces to ask for first: enough for the film's pace, and for fuller request queues."""
        return self._pieces_at(max(self._film_rate, self._rate or 0.0))

    def _pieces_at(self, rate: float) -> int:
        """How many pieces to have open at a rate of so many bytes/second."""
        return 1 + math.ceil(self._settings.window_seconds * rate / self._geometry.piece_bytes)

    def _holdings(self, prospects: Prospects) -> list[Holding]:
        """What each neighbour has who can be asked, and how much of it at the rate it sends."""
        return [(has, self._pieces_at(rate)) for has, rate in prospects.open()]

    def _coming(self, view: SwarmView, window: int) -> NDArray[np.intp]:
        """What the picker would want next of the pieces that no neighbour has yet."""
        hoped = view.needed > view.candidates  # the former without the latter
        if not hoped[hoped.argmax()]:
            return _NOTHING
        return rank_best(self._picker, view.offering(hoped), self._rng, window)[:window]

    def _terms(self, facts: Facts, allowance: Allowance, first_blocks: Blocks | None) -> Terms:
        """On what terms the server may be asked now."""
        settings = self._settings.hand_over
        ahead, most = settings.ahead_seconds, settings.most_ahead_seconds
        if facts.uplinks is not None and not len(facts.uplinks.rates):
            ahead = max(ahead, settings.alone_seconds)
        drawn = None
        if facts.paused:
            ahead, most = 0.0, min(most, settings.paused_seconds)
        elif facts.together > 1 and allowance.ease == 1.0:
            ahead, drawn = 0.0, self._drawn(facts.together)
        # That nobody has a piece yet means nothing while one who watches ahead of us has still to
        # get it for itself.
        return Terms(
            waiting=facts.waiting,
            ahead_seconds=allowance.ease * min(ahead, most, facts.lead_seconds),
            settled_seconds=allowance.ease * min(settings.ahead_seconds, most),
            most_ahead_seconds=most,
            first_blocks=first_blocks,
            bytes_left=allowance.bytes_left,
            drawn=drawn,
        )

    def _drawn(self, together: int) -> NDArray[np.float64]:
        """When each piece is ours to fetch, should no neighbour have it by then."""
        if self._lots is None:
            self._lots = Lots(self._geometry.pieces, self._rng, self._settings.lots)
        return self._lots.early(together)

    def _doubted(
        self, view: SwarmView, terms: Terms, prospects: Prospects, unasked: Unasked
    ) -> list[int]:
        """What some neighbour has and none seems to be able to bring in time."""
        near = view.near(terms.ahead_seconds)
        ahead, whole = terms.ahead_seconds, self._geometry.piece_bytes
        pieces, slacks, sizes, stuck = [], [], [], []
        for piece, slack, in_flight, closed, offered in zip(
            near.pieces, near.slack, near.in_flight, near.closed, near.offered, strict=True
        ):
            if slack > ahead:
                break
            if closed or not (offered or in_flight):
                continue
            size = whole
            is_stuck = False
            if in_flight:
                size, of_whom = unasked(piece)
                is_stuck = prospects.is_stuck(of_whom)
            pieces.append(piece)
            slacks.append(slack)
            sizes.append(size)
            stuck.append(is_stuck)
        if not pieces:
            return []
        factor = self._settings.estimate.hopeless_factor
        soonest = prospects.soonest(pieces, sizes)
        # All of it may have been asked for already, of somebody who tells no longer what it has.
        return [
            piece
            for piece, slack, size, is_stuck, seconds in zip(
                pieces, slacks, sizes, stuck, soonest, strict=True
            )
            if is_stuck or (size and seconds > (factor * slack if slack > 0 else 0.0))
        ]

    def _late(
        self,
        facts: Facts,
        view: SwarmView,
        terms: Terms,
        prospects: Prospects | None,
        missing_size: MissingBytes,
    ) -> tuple[list[int], float]:
        """What is not asked of peers, and seconds until that may be more.

        A piece under way takes requests until a block would come after the moment at which the
        server takes over: what is on its way by then has come, and is not sent twice.
        """
        if view.horizon == -math.inf:
            return [], math.inf
        near = view.near(view.horizon)
        late: list[int] = [] if prospects is None else list(terms.hopeless)
        begun, slacks = [], []
        horizon = view.horizon
        for piece, slack, in_flight, closed in zip(
            near.pieces, near.slack, near.in_flight, near.closed, strict=True
        ):
            if slack >= horizon:
                break
            if not in_flight:
                late.append(piece)
            elif not closed:
                begun.append(piece)
                slacks.append(slack)
        if prospects is None or not begun:
            return late, math.inf
        safety = self._settings.estimate.safety_factor
        wait = math.inf
        for piece, slack, seconds in zip(
            begun, slacks, prospects.next_block(begun, BLOCK_BYTES), strict=True
        ):
            needed = safety * seconds + self._hand_over_seconds(facts, missing_size(piece))
            left = slack - needed
            if left > 0:
                wait = min(wait, left)
            else:
                late.append(piece)
        return late, wait

    def _hand_over(
        self,
        facts: Facts,
        view: SwarmView,
        terms: Terms,
        missing_blocks: MissingBlocks,
        missing_size: MissingBytes,
    ) -> tuple[list[Order], frozenset[int], float]:
        """What the server must supply now, what it must not, and seconds until it may have to."""
        geometry, settings = self._geometry, self._settings.hand_over
        orders = due_orders(
            view, missing_blocks, geometry, facts.origin, settings, terms, missing_size
        )
        left = terms.bytes_left
        if self._budget is not None:
            for order in orders:
                self._budget.spend(facts.now, _ordered_bytes(geometry, order))
            left -= sum(_ordered_bytes(geometry, order) for order in orders)
        after = view.closing([order.piece for order in orders])
        refused: frozenset[int] = frozenset()
        if left < geometry.piece_bytes:
            plenty = replace(terms, bytes_left=math.inf)
            unmet = due_orders(
                after, missing_blocks, geometry, facts.origin, settings, plenty, missing_size
            )
            refused = frozenset(order.piece for order in unmet)
        if left != terms.bytes_left:
            terms = replace(terms, bytes_left=left)
        wait = next_order_in(after, geometry, facts.origin, settings, terms, missing_size)
        return orders, refused, wait


def _ordered_bytes(geometry: Geometry, order: Order) -> int:
    return sum(
        geometry.block_size(order.piece, block)
        for first, end in order.blocks
        for block in range(first, end)
    )
