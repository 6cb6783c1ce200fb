"""Which pieces are left to the origin: decided once, so that no piece goes back and forth.

Rates and queues are noisy. A piece that is closed to peers at one moment, open at the next and
ordered from the origin after that is sent twice. So what was given up stays so until there is
clearly time again (after a seek, or because peers became much faster), and a doubt must last before
it counts.
"""

import math
from collections.abc import Iterable
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

    def next_belief_in(self, now: float) -> float:
        """Seconds until a doubt has lasted; +inf if there is none that has not."""
        if not self._since:
            return math.inf
        doubt = self.settings.doubt_seconds
        until = (since + doubt - now for since in self._since.values())
        return min((seconds for seconds in until if seconds > 0), default=math.inf)
