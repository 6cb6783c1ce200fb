"""From a plan to libtorrent's piece priorities, sending only what changed.

How libtorrent takes them (2.0.15, read in its source): 0 is never asked for; 7 comes before
everything else, but among several pieces at 7 it chooses by availability; below 7, with
`sequential_download` on, pieces are asked for in index order. So a plan that is sorted by piece
number is steered exactly by the sequential flag, any other one by 7 for what it wants next.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.policy.view import Plan, SwarmView

__all__ = ["OFF", "OPEN", "TOP", "Orders", "Steering"]

OFF = 0
WAITING = 1
OPEN = 4
TOP = 7


@dataclass(frozen=True, slots=True)
class Orders:
    """What to tell libtorrent.

    Attributes:
        changes: (piece, priority) of every piece whose priority is another now.
        sequential: whether pieces of equal priority go by index, or by availability.
    """

    changes: list[tuple[int, int]]
    sequential: bool


class Steering:
    """The priorities in force for one film, uint8[pieces]; all off in the beginning."""

    def __init__(self, pieces: int) -> None:
        self._sequential = False
        self.priorities: NDArray[np.uint8] = np.zeros(pieces, dtype=np.uint8)

    def apply(self, plan: Plan, coming: NDArray[np.intp], view: SwarmView) -> Orders:
        """Take a plan into force and return what has changed.

        `coming`, the best of what nobody has yet, is wanted at the lowest priority: the moment a
        neighbour announces such a piece it is asked for, without waiting for the next plan; and
        libtorrent, which counts it as still to come, does not fall into its end game, where it
        asks several neighbours for the same block. One missing piece is always wanted: a torrent
        that wants nothing counts as finished, and availability then reads zero.
        """
        wanted = np.zeros_like(self.priorities)
        wanted[coming] = WAITING
        # What is under way comes first in a plan, whatever its number: only the rest is a ranking.
        ranked = np.concatenate((plan.top, plan.open))
        fresh = ranked[~view.in_flight[ranked]]
        if fresh.size:
            self._sequential = bool(np.all(fresh[1:] > fresh[:-1]))
        sequential = self._sequential
        wanted[plan.open] = OPEN
        wanted[plan.top] = OPEN if sequential else TOP
        if not wanted.any() and view.missing.any():
            open_ones = view.missing & ~view.closed
            eligible = open_ones if open_ones.any() else view.missing
            latest = np.where(eligible, np.minimum(view.slack, 1e9), -np.inf)
            wanted[int(np.argmax(latest))] = WAITING
        changed = np.flatnonzero(wanted != self.priorities)
        self.priorities = wanted
        return Orders([(int(piece), int(wanted[piece])) for piece in changed], sequential)
