"""Which pieces are left to the origin: decided once, so that no piece goes back and forth.

Rates and queues are noisy. A piece that is closed to peers at one moment, open at the next and
ordered from the origin after that is sent twice. So what was given up stays so until there is
clearly time again (after a seek, or because peers became much faster), and a doubt must last before
it counts.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["GiveUp", "GiveUpSettings"]


@dataclass(frozen=True, slots=True)
class GiveUpSettings:
    """How firm decisions are."""

    doubt_seconds: float = 1.0
    """That no neighbour can bring a piece in time must be so for so long before it is believed."""
    regain_factor: float = 1.5
    """A piece that was given up is asked of peers again with this much more slack than it would
    take not to give it up."""
    settled_seconds: float = 1.5
    """A piece that has been given up for so long, and of which nothing is under way, is taken to
    stay so: the server may be asked for it."""


class GiveUp:
    """What was given up, and what is doubted: few pieces, by number.

    Args:
        settings: see `GiveUpSettings`.

    Attributes:
        given_up: not to be asked of peers any more.
    """

    def __init__(self, settings: GiveUpSettings) -> None:
        self.settings = settings
        self.given_up: set[int] = set()
        self._since: dict[int, float] = {}
        self._left_since: dict[int, float] = {}

    def update(
        self,
        slack: NDArray[np.float64],
        missing: NDArray[np.bool_],
        late: Iterable[int],
        horizon: float,
    ) -> None:
        """Give up what is late now, and take back what has time again.

        Args:
            slack: float64[P], seconds until each piece is due.
            missing: bool[P], not here.
            late: missing pieces that should not be asked of peers now.
            horizon: seconds of slack below which pieces are not begun; -inf takes back all.
        """
        if horizon == -math.inf:
            self.given_up = set()
            return
        regained = horizon * self.settings.regain_factor
        given_up = set(late)
        for piece in self.given_up - given_up:
            if missing[piece] and not slack[piece] >= regained:
                given_up.add(piece)
        self.given_up = given_up

    def believed(self, now: float, doubted: Iterable[int]) -> frozenset[int]:
        """Which doubts have lasted.

        Args:
            now: the time, seconds.
            doubted: pieces that no neighbour seems to be able to bring in time.
        """
        before = self._since
        self._since = {piece: min(before.get(piece, now), now) for piece in doubted}
        if not self._since:
            return frozenset()
        latest = now - self.settings.doubt_seconds
        return frozenset(piece for piece, since in self._since.items() if since <= latest)

    def settled(self, now: float, in_flight: NDArray[np.bool_]) -> frozenset[int]:
        """What the server will have to supply in any case: to wait for its due time saves nothing.

        The sooner it is here, the sooner those who watch behind us can have it of us. Left until
        it is due, it comes to each of them too late to be begun in its turn, and a whole chain of
        viewers takes the same piece from the server.

        Args:
            now: the time, seconds.
            in_flight: bool[P], begun with peers: they bring a part of it.
        """
        before = self._left_since
        left = {piece: before.get(piece, now) for piece in self.given_up if not in_flight[piece]}
        self._left_since = left
        if not left:
            return frozenset()
        latest = now - self.settings.settled_seconds
        return frozenset(piece for piece, since in left.items() if since <= latest)

    def next_settled_in(self, now: float) -> float:
        """Seconds until something more has been given up for long; +inf if there is nothing."""
        return _least_left(self._left_since, now, self.settings.settled_seconds)

    def next_belief_in(self, now: float) -> float:
        """Seconds until a doubt has lasted; +inf if there is none that has not."""
        return _least_left(self._since, now, self.settings.doubt_seconds)


def _least_left(since: Mapping[int, float], now: float, seconds: float) -> float:
    """Until the first of these has lasted so long; +inf if each has, or there is none."""
    left = (begun + seconds - now for begun in since.values())
    return min((value for value in left if value > 0), default=math.inf)
