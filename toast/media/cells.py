"""From the place and time of every packet to a time map."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from toast.common.timemap import MAX_CELLS, TimeMap, cell_bytes_for

__all__ = ["Packets", "make_timemap", "merge_ranges", "need_times"]


@dataclass(frozen=True, eq=False, slots=True)
class Packets:
    """Where packets lie and when a player needs them; three arrays of one length.

    Attributes:
        start: int64, first byte of each packet in the file.
        end: int64, byte after its last one.
        due: float64, film time in seconds at which it is needed.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    due: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, float]]) -> Self:
        """Packets from (start, end, due) rows."""
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def need_times(shown: Sequence[float]) -> NDArray[np.float64]:
    """When each packet of one stream, in decoding order, is needed: float64 seconds.

    A packet must be there when the first of those that are decoded after it is shown: pictures
    are not stored in the order of showing.
    """
    return np.minimum.accumulate(np.asarray(shown, dtype=np.float64)[::-1])[::-1]


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same bytes as ranges that are in order and do not touch; empty ones vanish."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def make_timemap(
    film_bytes: int,
    duration: float,
    packets: Packets,
    *,
    index: Iterable[tuple[int, int]],
    first: Iterable[tuple[int, int]],
    source: str,
    keys: Sequence[tuple[float, int]] = (),
) -> TimeMap:
    """The time map of a film whose packets are known.

    Args:
        film_bytes: size of the film.
        duration: its length in seconds.
        packets: every packet, in any order.
        index: byte ranges [start, end) of header and index.
        first: byte ranges [start, end) of the first packets to be shown.
        source: the container's name.
        keys: film time at which each key frame is shown, and its first byte; in any order.

    Raises:
        UsageError: the parts do not fit together.
    """
    cell = cell_bytes_for(film_bytes)
    cells = -(-film_bytes // cell)
    start = np.clip(packets.start, 0, film_bytes - 1)
    end = np.clip(packets.end, start + 1, film_bytes)
    # A packet may span several cells: one entry for each cell that it touches.
    low = start // cell
    spans = (end - 1) // cell - low + 1
    total = int(spans.sum())
    nth = np.arange(total) - np.repeat(np.cumsum(spans) - spans, spans)
    due = np.full(cells, np.inf)
    np.minimum.at(due, np.repeat(low, spans) + nth, np.repeat(packets.due, spans))
    # Nobody needs a cell without packets (padding, leftovers): let it come along in file order.
    for at in np.flatnonzero(np.isinf(due))[::-1]:
        due[at] = due[at + 1] if at + 1 < cells else duration
    merged = merge_ranges(index)
    for low_byte, high_byte in merged:
        due[low_byte // cell : -(-high_byte // cell)] = 0.0
    shown, begins = _thinned(keys, duration)
    return TimeMap(
        film_bytes,
        duration,
        cell,
        np.clip(due, 0.0, math.nextafter(duration, 0.0)),
        merged,
        merge_ranges((*merged, *first)),
        source,
        shown,
        np.clip(begins, 0, film_bytes - 1) // cell,
    )


def _thinned(
    keys: Sequence[tuple[float, int]], duration: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Key frames in order: times and places; and no more of them than a map holds."""
    times, nth = np.unique(np.array([max(time, 0.0) for time, _ in keys]), return_index=True)
    begins = np.array([at for _, at in keys], dtype=np.int64)[nth]
    inside = times <= duration
    times, begins = times[inside], begins[inside]
    step = max(1, -(-times.size // MAX_CELLS))
    return times[::step], begins[::step]
