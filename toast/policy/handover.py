"""The hand-over: when the origin must supply a piece, and which of its blocks.

The source ("Toast", ch. 5) fetches a whole piece when the playhead enters it. Here only the blocks
that have not come from peers are fetched, at the last moment at which the origin can be trusted to
be in time; earlier only what no peer can bring in time, and never more than a few seconds of film.
"""

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.policy.view import SwarmView

__all__ = [
    "Blocks",
    "HandOverSettings",
    "MissingBlocks",
    "MissingBytes",
    "Order",
    "OriginEstimate",
    "Reason",
    "Terms",
    "due_orders",
    "make_order",
    "missing_bytes",
    "next_order_in",
]

Blocks = Callable[[int], NDArray[np.bool_]]
"""For a piece, bool[B]: something about its blocks."""
MissingBlocks = Blocks
"""For a piece, bool[B]: its blocks that are not here."""
MissingBytes = Callable[[int], int]
"""For a piece: bytes of it that are not here."""


class Reason(StrEnum):
    """Why the origin was asked."""

    STARTUP = "startup"
    """The first picture waits for it."""
    RESUME = "resume"
    """The first picture waits for it, at a place in the film that was remembered."""
    SEEK = "seek"
    """The picture after a seek waits for it."""
    URGENT = "urgent"
    """Peers did not bring it in time."""
    NO_SOURCE = "no_source"
    """No neighbour has it, or none that could bring it in time."""
    POISONED = "poisoned"
    """What peers brought did not pass its hash check."""


@dataclass(frozen=True, slots=True)
class OriginEstimate:
    """What is known of the way to the origin.

    Attributes:
        rtt_seconds: from a request to the first byte of its answer; nine of ten take no longer.
        rate: bytes/second at which an answer comes; nine of ten come no slower.
        up: whether the origin answers at all.
    """

    rtt_seconds: float
    rate: float
    up: bool


@dataclass(frozen=True, slots=True)
class HandOverSettings:
    """How careful to be."""

    margin_seconds: float = 0.5
    """Added to what the origin is expected to need: its estimate is nine of ten, not a promise."""
    verification_seconds: float = 0.05
    """From the last byte of a piece to its being verified and readable."""
    ahead_seconds: float = 8.0
    """Slack below which a piece that no neighbour can bring in time is fetched: longer gives a
    neighbour more time to get it, shorter risks that the origin gets many of these at once."""
    alone_seconds: float = 10.0
    """The same while there is no neighbour at all: nothing is saved by waiting. Who quits has cost
    so much film that nobody saw, a piece, and the film's index: 15 s of film in all."""
    most_ahead_seconds: float = 15.0
    """Slack above which nothing is fetched, however slow the origin: who quits has lost no more."""
    paused_seconds: float = 3.0
    """The same while the film is paused."""
    parallel: int = 2
    """Pieces being fetched at the same time. The rest waits, and shrinks by what peers bring."""
    parallel_waiting: int = 64
    """The same for the pieces that a first picture waits for, after a start or a seek: there the
    index of a long film is, and what is together is asked for together."""


@dataclass(frozen=True, slots=True)
class Order:
    """Blocks of one piece to fetch from the origin.

    Attributes:
        piece: number of the piece.
        blocks: ranges [a, b) of block numbers, most wanted first, none of them overlapping.
        reason: why.
        slack: seconds until the piece is due; not positive if it is overdue.
        awaited: how many of the ranges, from the first on, a picture waits for.
    """

    piece: int
    blocks: tuple[tuple[int, int], ...]
    reason: Reason
    slack: float
    awaited: int = 0


@dataclass(eq=False, slots=True)
class Terms:
    """On what terms the origin may be asked at one moment.

    Attributes:
        waiting: why a picture waits for what is due now; None while the film runs.
        ahead_seconds: slack below which a piece that no neighbour can bring in time is fetched.
        most_ahead_seconds: slack above which nothing is.
        hopeless: pieces that some neighbour has but none can bring in time.
        settled_seconds: slack below which a piece that is settled is fetched.
        settled: pieces that will not be asked of peers any more.
        drawn: float64[P], slack below which a piece that no neighbour has is fetched because the
            lot fell on us; None: nobody watches together with us.
        first_blocks: of a piece, the blocks that the picture waits for; None if that is not known.
        bytes_left: most that may be asked for now.
    """

    waiting: Reason | None = None
    ahead_seconds: float = 8.0
    most_ahead_seconds: float = 15.0
    hopeless: AbstractSet[int] = frozenset()
    settled_seconds: float = 8.0
    settled: AbstractSet[int] = frozenset()
    first_blocks: Blocks | None = None
    bytes_left: float = math.inf
    drawn: NDArray[np.float64] | None = None

    @property
    def longest_early(self) -> float:
        """Slack above which nothing is fetched before the last moment."""
        longest = self.ahead_seconds
        if self.settled:
            longest = max(longest, self.settled_seconds)
        return max(min(longest, self.most_ahead_seconds), self.longest_drawn)

    @property
    def longest_drawn(self) -> float:
        """Slack above which no lot lies; -inf if there are none."""
        return -math.inf if self.drawn is None else float(self.drawn.max())

    def early(self, piece: int, *, alone: bool) -> float:
        """Slack below which a piece is fetched before the last moment; -inf if it is not.

        Args:
            piece: which one.
            alone: whether no neighbour has it.
        """
        early = self.ahead_seconds if alone or piece in self.hopeless else -math.inf
        if piece in self.settled:
            early = max(early, self.settled_seconds)
        early = min(early, self.most_ahead_seconds)
        return max(early, float(self.drawn[piece])) if alone and self.drawn is not None else early


def make_order(
    piece: int,
    missing: NDArray[np.bool_],
    reason: Reason,
    slack: float,
    first: NDArray[np.bool_] | None = None,
) -> Order:
    """An order for the missing blocks of a piece.

    Args:
        piece: number of the piece.
        missing: bool[B], blocks that are not here.
        reason: why.
        slack: seconds until the piece is due.
        first: bool[B], blocks to name before all others.
    """
    if first is None:
        return Order(piece, _ranges(missing), reason, slack)
    awaited = _ranges(missing & first)
    return Order(piece, awaited + _ranges(missing & ~first), reason, slack, len(awaited))


def due_orders(  # noqa: PLR0917 - the contract of the rooms: callers may pass them by place
    view: SwarmView,
    missing_blocks: MissingBlocks,
    geometry: Geometry,
    estimate: OriginEstimate,
    settings: HandOverSettings,
    terms: Terms,
    missing_size: MissingBytes | None = None,
) -> list[Order]:
    """What to order from the origin now, earliest due first.

    A piece is ordered when the origin needs all the slack that is left, counting what it must
    send before; or when no neighbour can bring the piece and it is due soon. At most `parallel`
    pieces are closed at a time: ask again when one of them has come.

    Args:
        view: what is known now; `closed` pieces are ordered already.
        missing_blocks: bool[B] of a piece: its blocks that are not here.
        geometry: how the film is cut.
        estimate: the way to the origin. Nothing is ordered while it is down.
        settings: how careful to be.
        terms: see `Terms`.
        missing_size: the same as `missing_blocks` in bytes; None: they are counted.
    """
    orders: list[Order] = []
    size_of = missing_size or _counting(missing_blocks, geometry)
    left = terms.bytes_left
    under_way = len(view.supplied)
    if not estimate.up or left <= 0 or under_way >= _most(settings, terms):
        return orders
    fixed, rate, before = _way(view, size_of, estimate, settings)
    whole, parallel = geometry.piece_bytes, settings.parallel
    waiting, longest_early = terms.waiting is not None, terms.longest_early
    longest = fixed + (before + whole) / rate
    farthest = max(terms.most_ahead_seconds, terms.longest_drawn)
    for piece, slack, alone in view.open_by_slack(farthest):
        waited_for = waiting and slack <= 0
        room = settings.parallel_waiting if waited_for else parallel
        if under_way >= room or (slack > longest and slack > longest_early):
            break
        early = terms.early(piece, alone=alone)
        if slack > early and (
            slack > terms.most_ahead_seconds or (slack > longest and left >= whole)
        ):
            continue  # however much is missing of it
        size = size_of(piece)
        if not size:
            continue  # all here: it is being checked
        if size > left:
            break
        needed = fixed + (before + size) / rate
        reason = _reason(terms, slack, needed, waited_for=waited_for, early=early)
        if reason is not None:
            first = terms.first_blocks(piece) if waited_for and terms.first_blocks else None
            orders.append(make_order(piece, missing_blocks(piece), reason, slack, first))
            before += size
            left -= size
            under_way += 1
            longest = fixed + (before + whole) / rate
    return orders


def _reason(
    terms: Terms, slack: float, needed: float, *, waited_for: bool, early: float
) -> Reason | None:
    """Why a piece is ordered now, if it is."""
    if waited_for:
        return terms.waiting
    if early > -math.inf and slack <= max(needed, early):
        return Reason.NO_SOURCE
    return Reason.URGENT if slack <= needed else None


def next_order_in(  # noqa: PLR0917 - as `due_orders`
    view: SwarmView,
    geometry: Geometry,
    estimate: OriginEstimate,
    settings: HandOverSettings,
    terms: Terms,
    missing_size: MissingBytes | None = None,
) -> float:
    """Seconds until the next piece must be ordered if nothing else happens; +inf if never.

    Call it after `due_orders` with what that ordered marked closed. Without `missing_size` every
    piece counts in full: the answer may then be too early, and is at least 20 ms, so that a timer
    set by it does not spin.
    """
    if not estimate.up or terms.bytes_left <= 0:
        return math.inf
    if len(view.supplied) >= settings.parallel:
        return math.inf  # the arrival of one of them comes first
    size_of = missing_size or geometry.piece_size
    fixed, rate, before = _way(view, size_of, estimate, settings)
    whole = fixed + (before + geometry.piece_bytes) / rate
    longest = max(terms.longest_early, min(whole, terms.most_ahead_seconds))
    soonest = math.inf
    is_plenty = terms.bytes_left >= geometry.piece_bytes
    for piece, slack, alone in view.open_by_slack():
        if slack - longest > soonest:
            break
        early = terms.early(piece, alone=alone)
        if is_plenty and early == -math.inf and slack - whole >= soonest:
            continue  # it comes after another one, however much is missing of it
        size = size_of(piece)
        if not size:
            continue
        if size > terms.bytes_left:
            break
        needed = min(fixed + (before + size) / rate, terms.most_ahead_seconds)
        soonest = min(soonest, slack - max(needed, early))
    return max(soonest, 0.0 if missing_size else 0.02)


def missing_bytes(geometry: Geometry, piece: int, missing: NDArray[np.bool_]) -> int:
    """Bytes in the blocks of a piece that are named.

    Args:
        geometry: how the film is cut.
        piece: number of the piece.
        missing: bool[B], which blocks.
    """
    count = int(np.count_nonzero(missing))
    if not count:
        return 0
    full = geometry.block_size(piece, 0)
    short = full - geometry.block_size(piece, missing.size - 1) if missing[-1] else 0
    return full * count - short


def _ranges(blocks: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    flags, ranges = blocks.tobytes(), []
    start = flags.find(1)
    while start >= 0:
        end = flags.find(0, start)
        end = len(flags) if end < 0 else end
        ranges.append((start, end))
        start = flags.find(1, end)
    return tuple(ranges)


def _most(settings: HandOverSettings, terms: Terms) -> int:
    if terms.waiting is None:
        return settings.parallel
    return max(settings.parallel, settings.parallel_waiting)


def _way(
    view: SwarmView,
    size_of: MissingBytes,
    estimate: OriginEstimate,
    settings: HandOverSettings,
) -> tuple[float, float, int]:
    """Seconds that any order takes, bytes/second, and bytes ordered earlier that come first."""
    before = sum(size_of(piece) for piece in view.supplied)
    fixed = estimate.rtt_seconds + settings.verification_seconds + settings.margin_seconds
    return fixed, max(estimate.rate, 1.0), before


def _counting(missing_blocks: MissingBlocks, geometry: Geometry) -> MissingBytes:
    return lambda piece: missing_bytes(geometry, piece, missing_blocks(piece))
