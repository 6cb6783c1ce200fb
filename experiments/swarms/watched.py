"""How much of a film was shown, by the film times that were. Pure."""

from collections.abc import Iterable

import numpy as np

from toast.common.timemap import TimeMap

__all__ = ["shown_bytes"]


def shown_bytes(timemap: TimeMap, watched: Iterable[tuple[float, float]]) -> int:
    """Distinct bytes that were needed for what was shown.

    Args:
        timemap: of the film.
        watched: film times [from, to), in any order; they may overlap.
    """
    shown = np.zeros(timemap.due.size, dtype=np.bool_)
    for begin, end in watched:
        shown |= (timemap.due >= begin) & (timemap.due < end)
        if begin <= 0 and end >= timemap.duration:
            return timemap.film_bytes
    count = int(np.count_nonzero(shown)) * timemap.cell_bytes
    if shown[-1]:  # the last cell is as long as the film is
        count -= timemap.due.size * timemap.cell_bytes - timemap.film_bytes
    return count
