"""Choosing disks: at random as large as they are, or the emptiest."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from vodserver.allocation.base import Disks

__all__ = ["draw", "emptiest", "fill", "inclusion"]

_ONE: Final = 1 << 40
"""Probability 1 as an integer: sums of probabilities are then exact."""

_ROWS: Final = 4096


def inclusion(capacity: Disks, copies: int) -> NDArray[np.float64]:
    """How likely each disk is to get one of the copies of an extent.

    In proportion to capacity; but a disk gets at most one copy, so that what a very large disk
    cannot take goes to the others in proportion to theirs.

    Args:
        capacity: shape (disks,), more than 0 for at least `copies` of them.
        copies: how many different disks are drawn.

    Returns:
        Shape (disks,), each at most 1, `copies` in all.
    """
    likely = np.zeros(len(capacity))
    certain = np.zeros(len(capacity), dtype=bool)
    weight = capacity.astype(np.float64)
    while True:
        open_ = ~certain
        rest = copies - np.count_nonzero(certain)
        total = weight[open_].sum()
        likely[open_] = rest * weight[open_] / total if total > 0 else 0.0
        over = open_ & (likely >= 1.0)
        if not over.any():
            return likely
        certain |= over
        likely[over] = 1.0


def draw(extents: int, copies: int, capacity: Disks, rng: np.random.Generator) -> Disks:
    """Draw different disks for every extent, independently, each as likely as it is large.

    Systematic sampling in a new random order for each extent (Madow 1949; Hartley and Rao 1962):
    lay the disks' probabilities end to end, and take the disks at a random point of the first
    unit and at the same point of the following ones. Since none is longer than a unit, they
    differ; disks of equal size make every set of them equally likely.

    Args:
        extents: how many, > 0.
        copies: disks for each.
        capacity: shape (disks,), more than 0 for at least `copies` of them.
        rng: the only source of chance.

    Returns:
        Disk numbers, shape (extents, copies), the order of a row random too.
    """
    usable = np.flatnonzero(capacity)
    lengths = _whole(inclusion(capacity[usable], copies), copies)
    points = np.arange(copies) * _ONE
    drawn = np.empty((extents, copies), dtype=np.int64)
    for begin in range(0, extents, _ROWS):
        rows = min(_ROWS, extents - begin)
        order = rng.permuted(np.tile(np.arange(len(usable)), (rows, 1)), axis=1)
        ends = np.cumsum(lengths[order], axis=1)
        at = rng.integers(0, _ONE, size=(rows, 1)) + points
        place = (ends[:, None, :] <= at[:, :, None]).sum(axis=2)
        chosen = np.take_along_axis(order, place, axis=1)
        drawn[begin : begin + rows] = usable[chosen]
    return drawn


def _whole(likely: NDArray[np.float64], copies: int) -> Disks:
    """Probabilities in units of 1 / _ONE that sum to exactly `copies`, none above 1."""
    whole = np.minimum(np.rint(likely * _ONE).astype(np.int64), _ONE)
    # The rounding of all the others is made up by the one that has most room for it.
    slack = copies * _ONE - int(whole.sum())
    whole[int(np.argmin(np.abs(whole - _ONE // 2)))] += slack
    return whole


def fill(used: Disks, capacity: Disks) -> NDArray[np.float64]:
    """What part of each disk is in use; infinite for one that gets nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(capacity > 0, used / capacity, np.inf)


def emptiest(candidates: Disks, used: Disks, capacity: Disks) -> int:
    """The candidate of which the smallest part is in use; the first of equals."""
    return int(candidates[np.argmin(fill(used, capacity)[candidates])])
