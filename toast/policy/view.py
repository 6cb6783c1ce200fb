"""What a picker sees, and what it answers with."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Plan", "SwarmView"]


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def needed(self) -> NDArray[np.bool_]:
        """bool[P]: what peers may still bring, whether or not any neighbour has it now.

        A piece under way may be finished inside the horizon: what was begun in time may end there.
        """
        in_time = (self.slack >= self.horizon) | self.in_flight
        return self.missing & ~self.closed & in_time

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """bool[P]: the needed pieces that some neighbour has."""
        return self.needed & (self.availability > 0)


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """What to ask of peers: everything that is in neither list is off.

    Attributes:
        top: intp[k], pieces to ask for, most wanted first.
        open: intp[m], pieces that may be asked of a neighbour who has none of `top`, best first.
    """

    top: NDArray[np.intp]
    open: NDArray[np.intp]
