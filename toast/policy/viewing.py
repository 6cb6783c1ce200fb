"""All decisions of one viewing at one moment: what to ask of peers, and what of the server.

The policies of this room are put together here, and nowhere else, so that the viewer and a
simulator that hand in the same facts get the same decisions.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.policy.buffer import Buffer
from toast.policy.handover import (
    HandOverSettings,
    MissingBlocks,
    Order,
    OriginEstimate,
    due_orders,
    next_order_in,
)
from toast.policy.lookahead import HorizonRule, PeerRate
from toast.policy.pickers import Picker, make_plan
from toast.policy.view import Plan, SwarmView

__all__ = ["Decision", "Facts", "ViewingPolicy", "ViewingSettings"]

_NOTHING: NDArray[np.intp] = np.empty(0, np.intp)


@dataclass(frozen=True, slots=True)
class ViewingSettings:
    """How the policies are put together."""

    window_seconds: float = 2.0
    """How much of the film is asked for first ("top"), beyond what is on its way."""
    hand_over: HandOverSettings = field(default_factory=HandOverSettings)
    """When the server must supply a piece."""


@dataclass(frozen=True, eq=False, slots=True)
class Facts:
    """What is known at one moment; arrays have one entry per piece.

    Attributes:
        now: the time, seconds.
        slack: float64[P], seconds until each piece is due.
        have: bool[P], here and verified.
        closed: bool[P], on its way from the server.
        availability: int32[P], copies among the neighbours.
        in_flight: bool[P], some block asked of a peer or received.
        down_rate: bytes/second of film that all neighbours together send.
        queued_bytes: asked of them and not yet come.
        origin: the way to the server.
        lead_seconds: how far the foremost neighbour watches ahead of us; +inf if none does.
        starting: whether the picture waits for its first pieces, at the start or after a seek.
        seeking: whether that is after a seek.
    """

    now: float
    slack: NDArray[np.float64]
    have: NDArray[np.bool_]
    closed: NDArray[np.bool_]
    availability: NDArray[np.int32]
    in_flight: NDArray[np.bool_]
    down_rate: float
    queued_bytes: int
    origin: OriginEstimate
    lead_seconds: float
    starting: bool
    seeking: bool


@dataclass(frozen=True, eq=False, slots=True)
class Decision:
    """What to do now.

    Attributes:
        view: what it was decided on.
        plan: what to ask of peers.
        coming: intp[n], pieces that nobody has yet and that are wanted the moment somebody does.
        window: how many pieces the plan puts at its top, beyond those under way.
        orders: what to fetch from the server, first things first.
        wait_seconds: how long this holds if nothing happens.
    """

    view: SwarmView
    plan: Plan
    coming: NDArray[np.intp]
    window: int
    orders: list[Order]
    wait_seconds: float

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
    ) -> None:
        self._geometry = geometry
        self._piece_seconds = film_seconds / geometry.pieces
        self._film_rate = geometry.film_bytes / film_seconds
        self._picker = picker
        self._horizon = horizon
        self._buffer = buffer
        self._settings = settings
        self._rng = rng
        self._peer_rate = PeerRate()
        self._plan = Plan(_NOTHING, _NOTHING)

    @property
    def need_seconds(self) -> float:
        """How far ahead of us someone must watch to have in time what we will need."""
        return self._piece_seconds + self._settings.hand_over.margin_seconds

    def decide(self, facts: Facts, missing_blocks: MissingBlocks) -> Decision:
        """What to do now.

        Args:
            facts: what is known.
            missing_blocks: bool[B] of a piece: its blocks that are not here.
        """
        view = self._view(facts)
        window = self._window()
        coming = _NOTHING
        stored = int(facts.have.sum()) * self._geometry.piece_bytes
        if self._buffer.decide(view, stored).suspend:
            self._plan = Plan(_NOTHING, _NOTHING)
        else:
            self._plan = make_plan(
                self._picker, view, self._rng, top=window, open_=window, previous=self._plan
            )
            coming = self._coming(view, window)
        orders, wait = self._hand_over(facts, view, missing_blocks)
        return Decision(view, self._plan, coming, window, orders, wait)

    def _view(self, facts: Facts) -> SwarmView:
        missing = ~facts.have
        due = np.where(missing, facts.slack, np.inf)
        return SwarmView(
            slack=facts.slack,
            missing=missing,
            availability=facts.availability,
            in_flight=facts.in_flight & missing,
            closed=facts.closed,
            horizon=self._horizon_of(facts),
            playhead_piece=int(np.argmin(due)),
            seconds_per_piece=self._piece_seconds,
        )

    def _horizon_of(self, facts: Facts) -> float:
        self._peer_rate.observe(facts.now, facts.down_rate, busy=bool(facts.in_flight.any()))
        if not facts.origin.up:
            return -math.inf  # nobody else can bring it: late is better than never
        hand_over = facts.origin.rtt_seconds + self._geometry.piece_bytes / facts.origin.rate
        return self._horizon.horizon(
            piece_bytes=self._geometry.piece_bytes,
            film_rate=self._film_rate,
            peer_rate=self._peer_rate.value,
            queued_bytes=facts.queued_bytes,
            hand_over_seconds=hand_over + self._settings.hand_over.margin_seconds,
        )

    def _window(self) -> int:
        """Pieces to ask for first: enough for the film's pace, and for fuller request queues."""
        rate = max(self._film_rate, self._peer_rate.value or 0.0)
        return 1 + math.ceil(self._settings.window_seconds * rate / self._geometry.piece_bytes)

    def _coming(self, view: SwarmView, window: int) -> NDArray[np.intp]:
        """What the picker would want next of the pieces that no neighbour has yet."""
        nobody = view.availability == 0
        hoped = replace(view, missing=view.missing & nobody, availability=nobody.astype(np.int32))
        return self._picker.rank(hoped, self._rng)[:window]

    def _hand_over(
        self, facts: Facts, view: SwarmView, missing_blocks: MissingBlocks
    ) -> tuple[list[Order], float]:
        """What the server must supply now, and seconds until it may have to again."""
        # That nobody has a piece yet means nothing while one who watches ahead of us has still to
        # get it for itself.
        settings = self._settings.hand_over
        settings = replace(settings, ahead_seconds=min(settings.ahead_seconds, facts.lead_seconds))
        orders = due_orders(
            view,
            missing_blocks,
            self._geometry,
            facts.origin,
            settings,
            not facts.starting,
            seeking=facts.seeking,
        )
        closed = facts.closed.copy()
        closed[[order.piece for order in orders]] = True
        after = replace(view, closed=closed)
        wait = next_order_in(after, self._geometry, facts.origin, settings, missing_blocks)
        return orders, wait
