"""What a picker sees, and what it answers with."""

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Near", "Plan", "SwarmView"]

_NEAR_SECONDS = 20.0
_SOON_SECONDS = 60.0
_CHUNK = 32


# Each decision makes some of these. So they are not frozen, which takes several times as long; and
# they are written out what a dataclass would write, since a compiler makes nothing of that.


@dataclass(init=False, eq=False, slots=True)
class Near:
    """What is missing and due soon, the earliest first: lists with one entry per piece.

    Most of a decision is about these few, and for a few, lists are quicker than arrays.

    Attributes:
        limit: all with so little slack are here.
        pieces: their numbers.
        slack: seconds until each is due.
        in_flight: whether it is under way from peers.
        closed: whether the origin is fetching it.
        offered: whether some neighbour has it.
    """

    limit: float
    pieces: list[int]
    slack: list[float]
    in_flight: list[bool]
    closed: list[bool]
    offered: list[bool]

    def __init__(  # noqa: PLR0917 - its fields
        self,
        limit: float,
        pieces: list[int],
        slack: list[float],
        in_flight: list[bool],
        closed: list[bool],
        offered: list[bool],
    ) -> None:
        self.limit = limit
        self.pieces = pieces
        self.slack = slack
        self.in_flight = in_flight
        self.closed = closed
        self.offered = offered

    def closing(self, pieces: Collection[int]) -> "Near":
        """The same with these pieces closed as well."""
        closed = [
            shut or piece in pieces for piece, shut in zip(self.pieces, self.closed, strict=True)
        ]
        return Near(self.limit, self.pieces, self.slack, self.in_flight, closed, self.offered)


@dataclass(init=False, eq=False, slots=True)
class SwarmView:
    """One viewer's view of its film and swarm at one moment; arrays have one entry per piece.

    The arrays are lent, not copied: whoever made the view leaves them alone while it is in use.

    Attributes:
        slack: float64[P], seconds until the piece is due; +inf for those behind the playhead.
        missing: bool[P], not here in full.
        availability: int32[P], copies among the neighbours.
        in_flight: bool[P], blocks of it were asked of peers and have not all come.
        closed: bool[P], the origin is fetching it: not to be asked of peers.
        horizon: seconds of slack below which a piece is no longer begun with peers.
        playhead_piece: the piece in which the playhead is.
        seconds_per_piece: mean play time of a piece.
    """

    slack: NDArray[np.float64]
    missing: NDArray[np.bool_]
    availability: NDArray[np.int32]
    in_flight: NDArray[np.bool_]
    closed: NDArray[np.bool_]
    horizon: float
    playhead_piece: int
    seconds_per_piece: float
    _needed: NDArray[np.bool_] | None = field(init=False, repr=False)
    _candidates: NDArray[np.bool_] | None = field(init=False, repr=False)
    _supplied: list[int] | None = field(init=False, repr=False)
    _near: Near | None = field(init=False, repr=False)
    _soon: tuple[NDArray[np.intp], NDArray[np.float64]] | None = field(init=False, repr=False)

    def __init__(  # noqa: PLR0917 - its fields
        self,
        slack: NDArray[np.float64],
        missing: NDArray[np.bool_],
        availability: NDArray[np.int32],
        in_flight: NDArray[np.bool_],
        closed: NDArray[np.bool_],
        horizon: float,
        playhead_piece: int,
        seconds_per_piece: float,
    ) -> None:
        self.slack = slack
        self.missing = missing
        self.availability = availability
        self.in_flight = in_flight
        self.closed = closed
        self.horizon = horizon
        self.playhead_piece = playhead_piece
        self.seconds_per_piece = seconds_per_piece
        self._needed = None
        self._candidates = None
        self._supplied = None
        self._near = None
        self._soon = None

    @property
    def needed(self) -> NDArray[np.bool_]:
        """bool[P]: what peers may still bring, whether or not any neighbour has it now.

        A piece under way may be finished inside the horizon: what was begun in time may end there.
        """
        if self._needed is None:
            # True > False: in one step what is missing and not closed.
            in_time = (self.slack >= self.horizon) | self.in_flight
            self._needed = (self.missing > self.closed) & in_time
        return self._needed

    @property
    def supplied(self) -> list[int]:
        """The missing pieces that the origin is fetching."""
        if self._supplied is None:
            self._supplied = (self.closed & self.missing).nonzero()[0].tolist()
        return self._supplied

    def near(self, least: float = _NEAR_SECONDS) -> Near:
        """The missing pieces with slack up to `least`, and perhaps some more."""
        if self._near is None or self._near.limit < least:
            limit = min(max(least, self.horizon, _NEAR_SECONDS), sys.float_info.max)
            is_soon = limit <= max(self.horizon, 0.0) + _SOON_SECONDS
            pieces, slack = self._all_soon() if is_soon else self._due_within(limit)
            count = int(slack.searchsorted(limit, side="right"))
            self._near = self._lists(limit, pieces[:count], slack[:count])
        return self._near

    def soon(self, pieces: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Of some missing pieces those due in the minute behind the horizon, the earliest first."""
        soon, _ = self._all_soon()
        chosen: NDArray[np.intp] = soon[pieces[soon]]
        return chosen

    def _all_soon(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        if self._soon is None:
            self._soon = self._due_within(max(self.horizon, 0.0) + _SOON_SECONDS)
        return self._soon

    def _due_within(self, limit: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The missing pieces with slack up to a limit, earliest due first, and their slack."""
        pieces = (self.missing & (self.slack <= limit)).nonzero()[0]
        slack = self.slack[pieces]
        order = slack.argsort(kind="stable")
        return pieces[order], slack[order]

    def closing(self, pieces: Collection[int]) -> "SwarmView":
        """The same with these missing pieces closed as well."""
        if not pieces:
            return self
        closed = self.closed.copy()
        for piece in pieces:
            closed[piece] = True
        view = SwarmView(
            self.slack,
            self.missing,
            self.availability,
            self.in_flight,
            closed,
            self.horizon,
            self.playhead_piece,
            self.seconds_per_piece,
        )
        # What is due when stays the same, and is not looked for twice.
        view._soon = self._soon
        if self._near is not None:
            view._near = self._near.closing(pieces)
        if self._supplied is not None:
            view._supplied = sorted({*self._supplied, *pieces})
        return view

    def offering(self, pieces: NDArray[np.bool_]) -> "SwarmView":
        """As if some of the needed pieces alone were missing, and some neighbour had them."""
        soon, slack = self._all_soon()
        chosen = pieces[soon]
        copies = pieces.astype(np.int32)
        return self._of(pieces, pieces, copies, (soon[chosen], slack[chosen]))

    def among(self, pieces: NDArray[np.bool_]) -> "SwarmView":
        """As if some of the candidates were all there are."""
        return self._of(pieces, self.missing, self.availability, self._soon)

    def _of(
        self,
        candidates: NDArray[np.bool_],
        missing: NDArray[np.bool_],
        availability: NDArray[np.int32],
        soon: tuple[NDArray[np.intp], NDArray[np.float64]] | None,
    ) -> "SwarmView":
        view = SwarmView(
            self.slack,
            missing,
            availability,
            self.in_flight,
            self.closed,
            self.horizon,
            self.playhead_piece,
            self.seconds_per_piece,
        )
        view._needed = view._candidates = candidates
        view._soon = soon
        return view

    def open_by_slack(self, most: float = np.inf) -> Iterator[tuple[int, float, bool]]:
        """Missing pieces that are not closed and have slack up to `most`, earliest due first.

        Yields:
            The piece, its slack, and whether no neighbour can bring it. None is behind the
            playhead.
        """
        near = self.near()
        yield from _open(near, most)
        if near.limit >= most:
            return
        further = self.missing & (self.slack > near.limit) & (self.slack < np.inf)
        pieces = further.nonzero()[0]
        pieces = pieces[self.slack[pieces].argsort(kind="stable")]
        for first in range(0, pieces.size, _CHUNK):  # hardly anyone looks at more than one
            some = pieces[first : first + _CHUNK]
            chunk = self._lists(most, some, self.slack[some])
            yield from _open(chunk, most)
            if chunk.slack[-1] > most:
                return

    def _lists(self, limit: float, pieces: NDArray[np.intp], slack: NDArray[np.float64]) -> Near:
        return Near(
            limit,
            pieces.tolist(),
            slack.tolist(),
            self.in_flight[pieces].tolist(),
            self.closed[pieces].tolist(),
            (self.availability[pieces] > 0).tolist(),
        )

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """bool[P]: the needed pieces that some neighbour has."""
        if self._candidates is None:
            self._candidates = self.needed & (self.availability > 0)
        return self._candidates


@dataclass(eq=False, slots=True)
class Plan:
    """What to ask of peers: everything that is in neither list is off.

    Attributes:
        top: intp[k], pieces to ask for, most wanted first.
        open: intp[m], pieces that may be asked of a neighbour who has none of `top`: the next best,
            and then, of who has none of those either, the best that it has.
    """

    top: NDArray[np.intp]
    open: NDArray[np.intp]


def _open(near: Near, most: float) -> Iterator[tuple[int, float, bool]]:
    found = zip(near.pieces, near.slack, near.in_flight, near.closed, near.offered, strict=True)
    for piece, slack, in_flight, closed, offered in found:
        if slack > most:
            return
        if not closed:
            yield piece, slack, not (offered or in_flight)
