"""The hand-over: when the origin must supply a piece, and which of its blocks.

The source ("Toast", ch. 5) fetches a whole piece when the playhead enters it. Here only the blocks
that have not come from peers are fetched, as late as the origin can be trusted to be in time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.policy.view import SwarmView

__all__ = [
    "HandOverSettings",
    "MissingBlocks",
    "Order",
    "OriginEstimate",
    "Reason",
    "due_orders",
    "make_order",
    "next_order_in",
]

MissingBlocks = Callable[[int], NDArray[np.bool_]]


class Reason(StrEnum):
    """Why the origin was asked."""

    STARTUP = "startup"
    """The first picture waits for it."""
    URGENT = "urgent"
    """Peers did not bring it in time."""
    NO_SOURCE = "no_source"
    """No neighbour has it."""
    POISONED = "poisoned"
    """What peers brought did not pass its hash check."""
    SEEK = "seek"
    """The picture after a seek waits for it."""


@dataclass(frozen=True, slots=True)
class OriginEstimate:
    """What is known of the way to the origin.

    Attributes:
        rtt_seconds: from a request to the first byte of its answer.
        rate: bytes/second at which an answer comes.
        up: whether the origin answers at all.
    """

    rtt_seconds: float
    rate: float
    up: bool


@dataclass(frozen=True, slots=True)
class HandOverSettings:
    """How careful to be."""

    margin_seconds: float = 0.5
    """Added to what the origin is expected to need: its estimate is a mean, not a promise."""
    ahead_seconds: float = 8.0
    """Slack below which a piece that no neighbour has is fetched: longer gives a neighbour more
    time to get it, shorter risks that the origin gets many of these at once."""
    parallel: int = 2
    """Pieces being fetched at the same time. The rest waits, and shrinks by what peers bring."""


@dataclass(frozen=True, slots=True)
class Order:
    """Blocks of one piece to fetch from the origin.

    Attributes:
        piece: number of the piece.
        blocks: ranges [a, b) of block numbers, in order, not touching.
        reason: why.
        slack: seconds until the piece is due; not positive if it is overdue.
    """

    piece: int
    blocks: tuple[tuple[int, int], ...]
    reason: Reason
    slack: float


def make_order(piece: int, missing: NDArray[np.bool_], reason: Reason, slack: float) -> Order:
    """An order for the missing blocks of a piece.

    Args:
        piece: number of the piece.
        missing: bool[B], blocks that are not here.
        reason: why.
        slack: seconds until the piece is due.
    """
    edges = np.flatnonzero(np.diff(missing.astype(np.int8), prepend=0, append=0)).tolist()
    return Order(piece, tuple(zip(edges[0::2], edges[1::2], strict=True)), reason, slack)


def due_orders(  # noqa: PLR0917 - the contract of the rooms: callers may pass them by place
    view: SwarmView,
    missing_blocks: MissingBlocks,
    geometry: Geometry,
    estimate: OriginEstimate,
    settings: HandOverSettings,
    started: bool,
    *,
    seeking: bool = False,
) -> list[Order]:
    """What to order from the origin now, earliest due first.

    A piece is ordered when the origin needs all the slack that is left, counting what it must
    send before; or when no neighbour has the piece and it is due soon. At most `parallel` pieces
    are closed at a time: ask again when one of them has come.

    Args:
        view: what is known now; `closed` pieces are ordered already.
        missing_blocks: bool[B] of a piece: its blocks that are not here.
        geometry: how the film is cut.
        estimate: the way to the origin. Nothing is ordered while it is down.
        settings: how careful to be.
        started: whether the picture runs; before, what is due now is needed for the start.
        seeking: that start is one after a seek.
    """
    orders: list[Order] = []
    room = settings.parallel - int(np.count_nonzero(view.closed & view.missing))
    if not estimate.up or room <= 0:
        return orders
    fixed, rate, before = _way(view, missing_blocks, geometry, estimate, settings)
    for piece in _by_slack(view):
        slack = float(view.slack[piece])
        most = fixed + (before + geometry.piece_bytes) / rate
        if len(orders) >= room or slack > max(most, settings.ahead_seconds):
            break
        missing = missing_blocks(piece)
        size = _bytes(geometry, piece, missing)
        if not size:
            continue  # all here: it is being checked
        needed = fixed + (before + size) / rate
        nobody = _nobody_has(view, piece)
        reason = None
        if slack <= 0 and not started:
            reason = Reason.SEEK if seeking else Reason.STARTUP
        elif nobody and slack <= max(needed, settings.ahead_seconds):
            reason = Reason.NO_SOURCE
        elif slack <= needed:
            reason = Reason.URGENT
        if reason is not None:
            orders.append(make_order(piece, missing, reason, slack))
            before += size
    return orders


def next_order_in(
    view: SwarmView,
    geometry: Geometry,
    estimate: OriginEstimate,
    settings: HandOverSettings,
    missing_blocks: MissingBlocks | None = None,
) -> float:
    """Seconds until the next piece must be ordered if nothing else happens; +inf if never.

    Call it after `due_orders` with what that ordered marked closed. Without `missing_blocks` every
    piece counts in full: the answer may then be too early, and is at least 20 ms, so that a timer
    set by it does not spin.
    """
    if not estimate.up:
        return math.inf
    if np.count_nonzero(view.closed & view.missing) >= settings.parallel:
        return math.inf  # the arrival of one of them comes first
    blocks = missing_blocks or (lambda piece: np.ones(geometry.blocks_in(piece), dtype=np.bool_))
    fixed, rate, before = _way(view, blocks, geometry, estimate, settings)
    most = max(settings.ahead_seconds, fixed + (before + geometry.piece_bytes) / rate)
    soonest = math.inf
    for piece in _by_slack(view):
        slack = float(view.slack[piece])
        if slack - most > soonest:
            break
        size = _bytes(geometry, piece, blocks(piece))
        if size:
            needed = fixed + (before + size) / rate
            if _nobody_has(view, piece):
                needed = max(needed, settings.ahead_seconds)
            soonest = min(soonest, slack - needed)
    return max(soonest, 0.0 if missing_blocks else 0.02)


def _way(
    view: SwarmView,
    missing_blocks: MissingBlocks,
    geometry: Geometry,
    estimate: OriginEstimate,
    settings: HandOverSettings,
) -> tuple[float, float, int]:
    """Seconds that any order takes, bytes/second, and bytes ordered earlier that come first."""
    closed = np.flatnonzero(view.closed & view.missing).tolist()
    before = sum(_bytes(geometry, piece, missing_blocks(piece)) for piece in closed)
    return estimate.rtt_seconds + settings.margin_seconds, max(estimate.rate, 1.0), before


def _by_slack(view: SwarmView) -> list[int]:
    """Pieces that could be ordered, earliest due first; what is behind the playhead is not."""
    wanted = np.flatnonzero(view.missing & ~view.closed & np.isfinite(view.slack))
    ordered: list[int] = wanted[np.argsort(view.slack[wanted], kind="stable")].tolist()
    return ordered


def _bytes(geometry: Geometry, piece: int, missing: NDArray[np.bool_]) -> int:
    """Bytes in the missing blocks of a piece."""
    blocks = np.flatnonzero(missing)
    if not blocks.size:
        return 0
    last = int(blocks[-1])
    full = geometry.block_size(piece, 0)
    return full * (int(blocks.size) - 1) + geometry.block_size(piece, last)


def _nobody_has(view: SwarmView, piece: int) -> bool:
    return view.availability[piece] <= 0 and not view.in_flight[piece]
