"""The limited local buffer: what to throw away, and when to stop asking.

The source ("Toast", ch. 5) caps the bytes kept: at the cap, pieces behind the playhead go first;
if there are none, all downloading is suspended until the playhead frees something. Here nothing is
asked for that there would be no room to keep until it is played. So whatever was asked for fits,
and the film goes on however small the buffer is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toast.common.registry import Registry
from toast.policy.errors import PolicyError

__all__ = [
    "Buffer",
    "BufferDecision",
    "Limited",
    "Stock",
    "Unlimited",
    "buffer_names",
    "create_buffer",
    "pieces_within",
]

_LEAST_PIECES = 4


@dataclass(frozen=True, eq=False, slots=True)
class Stock:
    """What a buffer decides on; arrays have one entry per piece.

    Attributes:
        slack: float64[P], seconds until each piece is due; +inf for those that are not needed any
            more. Those of the container's index stay due, and so does what a reader takes now.
        passed: float64[P], seconds since the playhead left each piece; <= 0 for the others.
        held: bool[P], stored and verified.
        coming: bool[P], begun and not finished: some of it is stored, or will be any moment.
        closed: bool[P], those of them that the origin is sending.
        availability: int32[P], copies among the neighbours.
    """

    slack: NDArray[np.float64]
    passed: NDArray[np.float64]
    held: NDArray[np.bool_]
    coming: NDArray[np.bool_]
    closed: NDArray[np.bool_]
    availability: NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class BufferDecision:
    """What a buffer wants.

    Attributes:
        eject: intp[n], pieces to delete, first ones first.
        admit: bool[P], missing pieces that may be asked for, and go on if begun, once those are
            deleted.
        suspend: whether to ask for nothing more for now.
    """

    eject: NDArray[np.intp]
    admit: NDArray[np.bool_]
    suspend: bool


class Buffer(Protocol):
    """Decides what is kept."""

    @property
    def name(self) -> str:
        """The name it is registered under."""

    def decide(self, stock: Stock) -> BufferDecision:
        """What to do with what is stored."""


class Unlimited:
    """Keeps everything: disks are large, and every piece kept is one that a neighbour may take."""

    name = "unlimited"

    def decide(self, stock: Stock) -> BufferDecision:
        """Nothing to eject, no reason to stop."""
        return BufferDecision(np.empty(0, dtype=np.intp), ~stock.held, suspend=False)


class Limited:
    """Keeps so many pieces at most, finished or not.

    Worth keeping, best first: what is due within `near_seconds` (at most half of the buffer); what
    was played in the last `back_seconds` (at most a quarter of it); what is due later. The first
    `pieces` of that are the buffer's span: only they are asked for. Anything else is deleted when,
    and only when, the span needs the room: first what was played longest ago, and of that first
    what the neighbours have; then what is due last; at the very end what was begun and is not
    wanted now.

    Args:
        pieces: how many.
        back_seconds: what was played so lately is kept for a step back.
        near_seconds: what is due so soon comes before that.

    Raises:
        PolicyError: fewer than four pieces, or times that are none.
    """

    name = "limited"

    def __init__(
        self, pieces: int, *, back_seconds: float = 30.0, near_seconds: float = 20.0
    ) -> None:
        if pieces < _LEAST_PIECES:
            raise PolicyError(f"a buffer of {pieces} pieces is too small: {_LEAST_PIECES} at least")
        if not (back_seconds >= 0 and near_seconds >= 0):
            raise PolicyError("a buffer's back_seconds and near_seconds are 0 or more")
        self.pieces = pieces
        self._back_seconds = back_seconds
        self._near_seconds = near_seconds
        self._reserve = max(2, pieces // 8)

    def decide(self, stock: Stock) -> BufferDecision:
        """What to delete, and what may be asked for then."""
        span = self._span(stock)
        occupied = stock.held | stock.coming
        room = self.pieces - int(np.count_nonzero(occupied))
        missing = np.flatnonzero(span & ~occupied)
        # As little as possible is deleted: it is what neighbours come for. But more than one piece
        # at a time must be under way.
        lacking = min(missing.size, self._reserve) - room
        eject = self._junk(stock, span)[: max(0, lacking)]
        admit = stock.coming & span
        admit[self._first(stock, missing)[: max(0, room + eject.size)]] = True
        return BufferDecision(eject, admit, suspend=not (admit & ~stock.coming).any())

    def _span(self, stock: Stock) -> NDArray[np.bool_]:
        """bool[P]: what is worth its place, here or not."""
        ahead = np.flatnonzero(np.isfinite(stock.slack))
        ahead = ahead[np.argsort(stock.slack[ahead], kind="stable")]
        near = int(np.searchsorted(stock.slack[ahead], self._near_seconds, side="right"))
        near = min(near, self.pieces // 2)
        played = np.isinf(stock.slack) & stock.held & (stock.passed <= self._back_seconds)
        back = np.flatnonzero(played)
        back = back[np.argsort(stock.passed[back], kind="stable")][: self.pieces // 4]
        order = np.concatenate((ahead[:near], back, ahead[near:]))
        span = np.zeros(stock.held.size, dtype=np.bool_)
        span[order[: self.pieces]] = True
        return span

    @staticmethod
    def _junk(stock: Stock, span: NDArray[np.bool_]) -> NDArray[np.intp]:
        """What can go, first ones first."""
        behind = np.isinf(stock.slack)
        finished = stock.held & ~span
        played = np.flatnonzero(finished & behind)
        lacked = stock.availability[played] <= 0
        played = played[np.lexsort((-stock.passed[played], lacked))]
        later = np.flatnonzero(finished & ~behind)
        later = later[np.argsort(-stock.slack[later], kind="stable")]
        begun = np.flatnonzero(stock.coming & ~stock.closed & ~span)
        return np.concatenate((played, later, begun))

    def _first(self, stock: Stock, missing: NDArray[np.intp]) -> NDArray[np.intp]:
        """Missing pieces in the order in which they get room: due soon, to be had, the others."""
        slack = stock.slack[missing]
        soon = slack <= self._near_seconds / 2
        rank = np.where(soon, 0, np.where(stock.availability[missing] > 0, 1, 2))
        return missing[np.lexsort((slack, rank))]


def pieces_within(
    film_bytes: int, piece_bytes: int, *, most_bytes: int | None, fraction: float | None
) -> int | None:
    """How many whole pieces fit into a buffer; None if it has no bound.

    Args:
        film_bytes: size of the film.
        piece_bytes: size of a piece.
        most_bytes: bound in bytes, or None.
        fraction: bound as a fraction of the film, or None.

    Raises:
        PolicyError: a bound that no piece fits into, or no number.
    """
    bounds = []
    if most_bytes is not None:
        bounds.append(float(most_bytes))
    if fraction is not None:
        bounds.append(fraction * film_bytes)
    if not bounds:
        return None
    most = min(bounds)
    if not math.isfinite(most) or most < _LEAST_PIECES * piece_bytes:
        raise PolicyError(
            f"a buffer of {most:.0f} bytes is too small for this film: "
            f"give it {_LEAST_PIECES * piece_bytes} bytes at least"
        )
    return None if most >= film_bytes else int(most) // piece_bytes


_BUFFERS: Registry[Buffer] = Registry("buffer", PolicyError)
_FACTORIES: dict[str, Callable[..., Buffer]] = {"limited": Limited, "unlimited": Unlimited}
for _name, _factory in _FACTORIES.items():
    _BUFFERS.register(_name, _factory)


def create_buffer(name: str, **params: Any) -> Buffer:
    """A buffer by name.

    Raises:
        PolicyError: no such buffer, or not its parameters.
    """
    return _BUFFERS.create(name, **params)


def buffer_names() -> tuple[str, ...]:
    """The names of all buffers, sorted."""
    return _BUFFERS.names()
