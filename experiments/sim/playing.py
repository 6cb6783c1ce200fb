"""The playhead in virtual time: `toast.policy.Playhead` for a film that runs from start to end.

That one looks at all pieces each time that it is told something, and a simulation tells it
something a million times. This one remembers the first piece that is missing. The tests hold it to
the other.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.sim.cut import Cut

__all__ = ["Playing"]


class Playing:
    """One viewing, without pauses.

    Args:
        cut: the film.
        opened_at: the moment from which waiting for the first picture counts.

    Attributes:
        opened_at: as given.
        start_seconds: from then to the first picture; None while there is none.
        stalls: how often the film halted because a piece was missing.
        stalled_at: when each of them began.
        stall_seconds: how long, all together, of those that are over.
        running: whether the film runs.
        ended: whether it is over.
        broken_off: whether the viewer has gone before that.
        seeking: whether the first picture after a seek is waited for.
        seek_seconds: how long it was waited for after each seek, so far.
        sought: for each seek, the film times from which and to which it went.
    """

    __slots__ = (
        "_cut",
        "_first",
        "_position",
        "_since",
        "_stalled_position",
        "broken_off",
        "ended",
        "halted_at",
        "opened_at",
        "running",
        "seek_seconds",
        "seeking",
        "sought",
        "stall_seconds",
        "stalled_at",
        "stalls",
        "start_seconds",
    )

    def __init__(self, cut: Cut, opened_at: float) -> None:
        self._cut = cut
        self.opened_at = opened_at
        self.start_seconds: float | None = None
        self.stalls = 0
        self.stalled_at: list[float] = []
        self.stall_seconds = 0.0
        self.running = False
        self.ended = False
        self.broken_off = False
        self.seeking = False
        self.seek_seconds: list[float] = []
        self.sought: list[tuple[float, float]] = []
        self._position = 0.0
        self._since = opened_at  # the time at which the position was that
        self.halted_at = opened_at
        self._stalled_position = -1.0
        self._first = 0  # place, by due time, of the first piece that may be missing

    @property
    def starting(self) -> bool:
        """Whether the first picture is waited for."""
        return self.start_seconds is None

    @property
    def awaiting(self) -> bool:
        """Whether a picture is waited for: the first, or that after a seek."""
        return self.seeking or self.start_seconds is None

    @property
    def _awaits_startup(self) -> bool:
        """Whether the first picture of the film is what the viewer waits for."""
        return self.start_seconds is None and self._position == 0.0

    def position(self, now: float) -> float:
        """Film time."""
        if not self.running or now <= self._since:
            return self._position
        return self._position + (now - self._since)

    def lost(self, piece: int) -> None:
        """A piece is here no more."""
        self._first = min(self._first, self._cut.place[piece])

    def stop_position(self, now: float, have: Sequence[bool] | memoryview) -> float:
        """Film time at which the playhead comes to a missing piece, or to the end."""
        cut, position = self._cut, self.position(now)
        order, until = cut.order, cut.until_list
        first, pieces = self._first, cut.pieces
        while first < pieces and (have[order[first]] or until[order[first]] <= position):
            first += 1
        self._first = first
        return max(position, cut.due_list[order[first]]) if first < pieces else cut.timemap.duration

    def seek(self, now: float, to: float) -> None:
        """Jump to a film time: a new start from there. One that has not begun begins there."""
        if self.ended or self.broken_off:
            return
        if not (self.running or self.awaiting):
            self.stall_seconds += now - self.halted_at
        self.sought.append((self.position(now), to))
        self._position, self._since = to, now
        self.running = False
        if not self.starting:
            self.seeking = True
            self.halted_at = now
        self._stalled_position = -1.0
        self._first = 0

    def watched(self, now: float) -> list[tuple[float, float]]:
        """The film times [from, to) that were shown, in the order in which they were."""
        begins = [0.0, *(to for _, to in self.sought)]
        ends = [*(left for left, _ in self.sought), self.position(now)]
        if self.ended:
            ends[-1] = self._cut.timemap.duration
        return list(zip(begins, ends, strict=True))

    def break_off(self, now: float) -> None:
        """The viewer goes, wherever the film is."""
        if not (self.running or self.awaiting):
            self.stall_seconds += now - self.halted_at
        self._position, self._since = self.position(now), now
        self.running = False
        self.broken_off = True

    def open_due(
        self, now: float, have: Sequence[bool] | memoryview, closed: Sequence[bool] | memoryview
    ) -> float:
        """Film time at which the first piece is due that is neither here nor on its way."""
        self.stop_position(now, have)
        cut, first = self._cut, self._first
        order = cut.order
        while first < cut.pieces and (have[order[first]] or closed[order[first]]):
            first += 1
        return cut.due_list[order[first]] if first < cut.pieces else cut.timemap.duration

    def follow(self, now: float, have: Sequence[bool] | memoryview) -> float:
        """Start, halt or go on by what is here. Returns the time to look again; +inf: never.

        Call it at the moment that this returned, and when a piece comes.
        """
        if self.ended or self.broken_off:
            return math.inf
        position = self.position(now)
        stop = self.stop_position(now, have)
        if self.running:
            if position < stop - 1e-9:
                return now + (stop - position)
            return self._halt(now, stop)
        if self._awaits_startup and not all(have[piece] for piece in self._cut.startup):
            return math.inf
        if position >= stop and stop < self._cut.timemap.duration:
            return math.inf
        return self._run(now, stop)

    def _run(self, now: float, stop: float) -> float:
        if self.starting:
            self.start_seconds = now - self.opened_at
            self.seeking = False
        elif self.seeking:
            self.seek_seconds.append(now - self.halted_at)
            self.seeking = False
        else:
            self.stall_seconds += now - self.halted_at
        self.running = True
        self._since = now
        return now + (stop - self._position)

    def _halt(self, now: float, stop: float) -> float:
        self._position, self._since = stop, now
        self.running = False
        if stop >= self._cut.timemap.duration:
            self.ended = True
            return math.inf
        self.halted_at = now
        if stop != self._stalled_position:  # halting twice at one picture is one stall
            self.stalls += 1
            self.stalled_at.append(now)
            self._stalled_position = stop
        return math.inf

    def slack(self, now: float, out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds until each piece is due, as `Playhead.slack`, written to `out`: float64[P]."""
        cut, position = self._cut, self.position(now)
        np.subtract(cut.due, position, out=out)
        if cut.is_monotone:
            out[: bisect_right(cut.until_list, position)] = math.inf
        else:
            out[cut.until <= position] = np.inf
        if self._awaits_startup:
            out[cut.startup] = np.minimum(out[cut.startup], 0.0)
        return out
