"""Hybrid: in order for what is due soon, Beta for the rest."""

import numpy as np
from numpy.typing import NDArray

from toast.policy.errors import PolicyError
from toast.policy.pickers.base import by_due_time, soonest
from toast.policy.pickers.beta import Beta
from toast.policy.view import SwarmView

__all__ = ["Hybrid"]


class Hybrid:
    """In order inside the soon range; Beta(1, 2) over the rest when nothing is left there.

    Args:
        in_order_seconds: length of the soon range beyond the horizon, in seconds of video. The
            source's best for an hour-long film was 15 minutes (ch. 5, fig. 5.4).

    Raises:
        PolicyError: a negative range.
    """

    name = "hybrid"

    def __init__(self, in_order_seconds: float = 900.0) -> None:
        if not in_order_seconds >= 0:
            raise PolicyError(f"hybrid: an in-order range of {in_order_seconds} s is not possible")
        self.in_order_seconds = in_order_seconds
        self._beta = Beta()

    def rank(self, view: SwarmView, rng: np.random.Generator) -> NDArray[np.intp]:
        """Candidates that are due soon by due time, then the others as Beta draws them."""
        drawn = self.drawn(view)
        soon = by_due_time(view, view.candidates & ~drawn)
        others = self._beta.rank(view, rng)
        return np.concatenate((soon, others[drawn[others]]))

    def rank_best(self, view: SwarmView, rng: np.random.Generator, most: int) -> NDArray[np.intp]:
        """The first `most` of them, and perhaps more: nothing is drawn without need."""
        soon = soonest(view, view.candidates, most)
        drawn_from = self._drawn_from(view)
        if 0 < most <= soon.size and view.slack[soon[most - 1]] < drawn_from:
            return soon[:most]
        count = int(view.slack[soon].searchsorted(drawn_from))
        return soon[:count] if count >= min(most, soon.size) else self.rank(view, rng)

    def drawn(self, view: SwarmView) -> NDArray[np.bool_]:
        """What lies behind the soon range."""
        return view.slack >= self._drawn_from(view)

    def _drawn_from(self, view: SwarmView) -> float:
        # With no server to fall back on nothing is given up, and the horizon may be -inf.
        return max(view.horizon, 0.0) + self.in_order_seconds
