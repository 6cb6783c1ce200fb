"""In-order: the piece that is due first."""

import numpy as np
from numpy.typing import NDArray

from toast.policy.pickers.base import by_due_time, soonest
from toast.policy.view import SwarmView

__all__ = ["InOrder"]


class InOrder:
    """The earliest due piece first.

    The source ("Toast", ch. 5) takes the lowest number; with the film's time map the order of due
    times is that of the player, also where the two differ.
    """

    name = "in-order"

    def rank(self, view: SwarmView, rng: np.random.Generator) -> NDArray[np.intp]:  # noqa: ARG002 - the protocol's: no chance here
        """Candidates by due time."""
        return by_due_time(view, view.candidates)

    def rank_best(
        self,
        view: SwarmView,
        rng: np.random.Generator,  # noqa: ARG002 - as `rank`
        most: int,
    ) -> NDArray[np.intp]:
        """The first `most` of them, and perhaps more."""
        return soonest(view, view.candidates, most)

    def drawn(self, view: SwarmView) -> NDArray[np.bool_]:
        """None: an earlier due piece always goes first."""
        return np.zeros_like(view.missing)
