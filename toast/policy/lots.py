"""Who of those who watch together fetches which piece from the server: drawn by lot.

Where many watch the same moment nobody is ahead of them, and nobody has what the others need. What
each of them had at the last moment, from the server, would come too late for the others. So each
fetches some pieces long before they are due, others than its neighbours: one who has a piece makes
two, two make four, and there is time for it.

Nobody says who shall. Each piece's fetching is put off by chance, long by most and hardly at all by
a few, and left when a neighbour has the piece by then. With the exponential distribution that
feedback to a multicast is suppressed with, few are early however many there are (RFC 5401,
NACK suppression).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LotSettings", "Lots"]


@dataclass(frozen=True, slots=True)
class LotSettings:
    """Between which moments lots lie, in seconds before a piece is due."""

    reach_seconds: float = 40.0
    """The earliest. Longer leaves more time to pass a piece on, and costs more of whoever quits:
    its share of the pieces, which others then have, is fetched so far ahead."""
    last_seconds: float = 1.0
    """The latest: by then the server has to be asked in any case."""


class Lots:
    """The lots of one viewer, drawn once for each piece.

    Args:
        pieces: of the film.
        rng: chance.
        settings: see `LotSettings`.
    """

    def __init__(
        self, pieces: int, rng: np.random.Generator, settings: LotSettings | None = None
    ) -> None:
        self.settings = settings or LotSettings()
        self._lots = rng.random(pieces)

    def early(self, together: int) -> NDArray[np.float64]:
        """float64[P], slack at which each piece is fetched if no neighbour has it by then.

        Args:
            together: viewers who draw, ourselves among them.
        """
        settings = self.settings
        steepness = math.log(together) + 1
        put_off = np.log1p(self._lots * math.expm1(steepness)) / steepness
        span = settings.reach_seconds - settings.last_seconds
        return settings.reach_seconds - span * put_off
