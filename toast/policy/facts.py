"""What is known at one moment of a viewing: all that its decisions are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.policy.estimate import AskedOf, Unasked, Uplinks
from toast.policy.handover import (
    MissingBlocks,
    MissingBytes,
    OriginEstimate,
    Reason,
    missing_bytes,
)

__all__ = ["Counts", "Facts"]


# Not frozen: to make a frozen one takes several times as long, once per decision.
@dataclass(eq=False, slots=True)
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
        together: viewers who watch the same moment and have nobody to follow, ourselves among
            them; 1 if that is not so.
        starting: whether the picture waits for its first pieces, at the start or after a seek.
        seeking: whether that is after a seek.
        resuming: whether that is the start, at a place in the film that was remembered.
        paused: whether the film is paused.
        uplinks: what is known of each neighbour; None if nothing is, beyond the sums above.
        passed: float64[P], seconds since the playhead left each piece, <= 0 for the others; None
            if nobody knows.
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
    resuming: bool = False
    paused: bool = False
    uplinks: Uplinks | None = None
    together: int = 1
    passed: NDArray[np.float64] | None = None

    @property
    def waiting(self) -> Reason | None:
        """Why a picture waits; None if none does."""
        if not self.starting:
            return None
        if self.seeking:
            return Reason.SEEK
        return Reason.RESUME if self.resuming else Reason.STARTUP


@dataclass(frozen=True, eq=False, slots=True)
class Counts:
    """What is known of the blocks of pieces, in numbers.

    Attributes:
        missing: bytes of a piece that are not here.
        unasked: of a piece in flight, what was asked of nobody, and of whom the rest.
    """

    missing: MissingBytes
    unasked: Unasked

    @classmethod
    def counting(
        cls, geometry: Geometry, missing_blocks: MissingBlocks, asked_of: AskedOf | None
    ) -> "Counts":
        """The numbers that go with flags of blocks."""

        def missing(piece: int) -> int:
            return missing_bytes(geometry, piece, missing_blocks(piece))

        def unasked(piece: int) -> tuple[int, Sequence[int]]:
            if asked_of is None:
                return missing(piece), ()
            asked = asked_of(piece)
            left = missing_bytes(geometry, piece, missing_blocks(piece) & (asked < 0))
            return left, asked[asked >= 0].tolist()

        return cls(missing, unasked)
