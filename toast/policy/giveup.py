"""Which pieces are left to the origin: decided once, so that no piece goes back and forth.

Rates and queues are noisy. A piece that is closed to peers at one moment, open at the next and
ordered from the origin after that is sent twice. So what was given up stays so until there is
clearly time again (after a seek, or because peers became much faster), and a doubt must last before
it counts.
"""

import math
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
    """What was given up, and what is doubted.

    Args:
        pieces: how many the film has.
        settings: see `GiveUpSettings`.

    Attributes:
        given_up: bool[P], not to be asked of peers any more.
    """

    def __init__(self, pieces: int, settings: GiveUpSettings) -> None:
        self.settings = settings
        self.given_up: NDArray[np.bool_] = np.zeros(pieces, dtype=np.bool_)
        self._since: NDArray[np.float64] = np.full(pieces, np.inf)
        self._doubting = False

    def update(
        self,
        slack: NDArray[np.float64],
        missing: NDArray[np.bool_],
        late: NDArray[np.bool_],
        horizon: float,
    ) -> None:
        """Give up what is late now, and take back what has time again.

        Args:
            slack: float64[P], seconds until each piece is due.
            missing: bool[P], not here.
            late: bool[P], what should not be asked of peers now.
            horizon: seconds of slack below which pieces are not begun; -inf takes back all.
        """
        if horizon == -math.inf:
            self.given_up[:] = False
            return
        regained = slack >= horizon * self.settings.regain_factor
        self.given_up = missing & (late | (self.given_up & ~regained))

    def believed(self, now: float, doubted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which doubts have lasted, bool[P].

        Args:
            now: the time, seconds.
            doubted: bool[P], pieces that no neighbour seems to be able to bring in time.
        """
        doubting = bool(doubted.any())
        if not (doubting or self._doubting):
            return doubted
        self._doubting = doubting
        self._since = np.where(doubted, np.minimum(self._since, now), np.inf)
        return self._since <= now - self.settings.doubt_seconds

    def next_belief_in(self, now: float) -> float:
        """Seconds until a doubt has lasted; +inf if there is none that has not."""
        if not self._doubting:
            return math.inf
        until = self._since + self.settings.doubt_seconds - now
        return float(until[until > 0].min(initial=math.inf))
