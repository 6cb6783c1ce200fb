"""Rarest-first: what stock BitTorrent clients do."""

import numpy as np
from numpy.typing import NDArray

from toast.policy.pickers.base import least
from toast.policy.view import SwarmView

__all__ = ["RarestFirst"]

_RANDOM_FIRST_PIECES = 4
"""A newcomer takes any four: rare pieces come slowly, and it needs something to trade.

Source: Cohen, "Incentives Build Robustness in BitTorrent" (2003), section 2.4.2.
"""


class RarestFirst:
    """The piece with the fewest copies among the neighbours first, ties at random."""

    name = "rarest-first"

    def rank(self, view: SwarmView, rng: np.random.Generator) -> NDArray[np.intp]:
        """Candidates by availability, or at random while fewer than four pieces are here."""
        return self.rank_best(view, rng, view.missing.size)

    def rank_best(self, view: SwarmView, rng: np.random.Generator, most: int) -> NDArray[np.intp]:
        """The first `most` of them, and perhaps more."""
        chosen = view.candidates.nonzero()[0]
        tie = rng.random(chosen.size)
        if view.missing.size - np.count_nonzero(view.missing) >= _RANDOM_FIRST_PIECES:
            tie += view.availability[chosen]  # a random fraction below 1 only orders equals
        return chosen[least(tie, most)]

    def drawn(self, view: SwarmView) -> NDArray[np.bool_]:
        """All: ties are broken at random."""
        return np.ones_like(view.missing)
