"""Beta: at random over the rest of the film, with a leaning to what is due sooner."""

import numpy as np
from numpy.typing import NDArray

from toast.policy.pickers.base import by_due_time, least
from toast.policy.view import SwarmView

__all__ = ["Beta"]


class Beta:
    """Draws needed pieces without replacement, with density Beta(1, 2) over their order.

    The density of Beta(1, 2) is 2 (1 - x): it falls linearly from the first needed piece to zero
    behind the last. x runs over all pieces that peers may still bring, also those that no
    neighbour has now; the draw is then among those that one has (as the source's picker takes the
    next best when the remote peer lacks its first choice).
    """

    name = "beta"

    def rank(self, view: SwarmView, rng: np.random.Generator) -> NDArray[np.intp]:
        """Candidates in the order in which they were drawn."""
        return self.rank_best(view, rng, view.missing.size)

    def rank_best(self, view: SwarmView, rng: np.random.Generator, most: int) -> NDArray[np.intp]:
        """The first `most` of them, and perhaps more."""
        needed = by_due_time(view, view.needed)
        x = (np.arange(needed.size) + 0.5) / needed.size if needed.size else np.empty(0)
        on_offer = view.candidates[needed]
        # Exponential clocks with the weights as rates ring in the order of weighted draws without
        # replacement (Efraimidis and Spirakis, Inf. Process. Lett. 97, 2006): one sort, no loop.
        rings = rng.standard_exponential(int(np.count_nonzero(on_offer))) / (1.0 - x[on_offer])
        return needed[on_offer][least(rings, most)]

    def drawn(self, view: SwarmView) -> NDArray[np.bool_]:
        """All."""
        return np.ones_like(view.missing)
