"""Who reads a film through the gateway, and what that says of where its viewer is.

A player reads ahead of what it shows, and tells nobody where it is. Two things are certain all the
same: it shows nothing that it has not taken yet, and while it plays, film time passes like time.
So the playhead runs from where the player began, halts where the player has taken nothing further
(then it is paused, or gone), and is moved by a read that begins elsewhere.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap

__all__ = ["Audience", "AudienceSettings", "Reader"]


@dataclass(frozen=True, slots=True)
class AudienceSettings:
    """How reads are understood. Times in film seconds."""

    jump_seconds: float = 5.0
    """A read that begins further than this from the playhead, and from what was read on from there,
    is a seek."""
    lead_seconds: float = 2.0
    """How far ahead of what it shows a player wants to be: it stops its picture earlier than at the
    last byte."""
    idle_seconds: float = 10.0
    """A connection on which nothing was taken for so long, although there was something, needs
    nothing: browsers leave such ones open."""


@dataclass(eq=False, slots=True)
class Reader:
    """One player's connection.

    Attributes:
        start: the film's byte at which it began.
        offset: the next byte that it has not taken.
        opened_at: when it began.
        taken_at: when it last took something.
        waiting: whether it waits for bytes that are not there.
        follows: whether it belongs to the viewing that the playhead stands for.
    """

    start: int
    offset: int
    opened_at: float
    taken_at: float
    waiting: bool = False
    follows: bool = False


class Audience:
    """All readers of one film.

    Args:
        timemap: when each byte is needed.
        geometry: how the film is cut.
        settings: see `AudienceSettings`.
    """

    def __init__(
        self, timemap: TimeMap, geometry: Geometry, settings: AudienceSettings | None = None
    ) -> None:
        self._timemap = timemap
        self.geometry = geometry
        self.settings = settings or AudienceSettings()
        self._due = timemap.due_of_pieces(geometry)
        self._readers: list[Reader] = []
        self._frontier = 0.0

    @property
    def readers(self) -> int:
        """How many connections are open."""
        return len(self._readers)

    @property
    def frontier(self) -> float:
        """Film time up to which the playhead's viewer has taken the film."""
        return self._frontier

    @property
    def is_waiting(self) -> bool:
        """Whether that viewer waits for bytes."""
        return any(reader.waiting for reader in self._readers if reader.follows)

    def waits_behind(self, position: float) -> list[int]:
        """Bytes that players wait for without having taken what is due at the playhead.

        A picture begins at the key frame before it: its bytes are awaited like those of a seek. A
        player that waits further ahead only fills its buffer.

        Args:
            position: film time of the playhead.

        Returns:
            The offset of the next byte of each such player.
        """
        return [
            reader.offset
            for reader in self._readers
            if reader.waiting
            and reader.offset < self.geometry.film_bytes
            and (self._in_index(reader.offset) or self._is_behind(reader, position))
        ]

    def open(self, now: float, offset: int, position: float) -> tuple[Reader, float | None]:
        """A player begins to read.

        Args:
            now: the time.
            offset: at which byte.
            position: film time of the playhead.

        Returns:
            The reader, and the film time to seek to if this is a seek.
        """
        reader = Reader(offset, offset, now, now)
        self._readers.append(reader)
        if self._in_index(offset):
            return reader, None
        at = self._timemap.time_of(offset)
        jump = self.settings.jump_seconds
        if position - jump <= at <= max(position, self._frontier) + jump:
            reader.follows = True
            return reader, None
        # Another player may still take the film elsewhere. Which of the two the playhead stands for
        # does not matter: what each needs counts.
        self.sought(at)
        reader.follows = True
        return reader, at

    def taken(self, now: float, reader: Reader, offset: int) -> None:
        """A player has taken the film up to a byte."""
        reader.offset = offset
        reader.taken_at = now
        reader.waiting = False
        if reader.follows:
            self._frontier = max(self._frontier, self._time_up_to(offset))

    def close(self, reader: Reader) -> None:
        """A player reads no further on this connection."""
        self._readers.remove(reader)

    def sought(self, time: float) -> None:
        """The playhead was moved by other means than a read."""
        self._frontier = time
        for reader in self._readers:
            reader.follows = False

    def slack(
        self,
        now: float,
        position: float,
        slack: NDArray[np.float64],
        *,
        starting: bool = False,
    ) -> NDArray[np.float64]:
        """What is due, counting all readers.

        Args:
            now: the time.
            position: film time of the playhead.
            slack: float64[P], seconds until each piece is due for the playhead.
            starting: whether a first picture is waited for: nothing is needed ahead of it.

        Returns:
            float64[P], seconds until some reader needs each piece, `lead_seconds` before the very
            last moment.
        """
        lead = 0.0 if starting else self.settings.lead_seconds
        least = slack - lead
        for reader in self._readers:
            idle = not reader.waiting and now - reader.taken_at > self.settings.idle_seconds
            if idle:
                continue
            reached = self._time_up_to(reader.offset)
            if reader.follows:
                # A picture begins at the key frame before it, so its player may read behind the
                # playhead, and begin to play there.
                if reached >= position:
                    continue
                at = reached
            else:
                at = min(self._timemap.time_of(reader.start) + now - reader.opened_at, reached)
            due = self._due - at - lead
            next_byte = min(reader.offset, self.geometry.film_bytes - 1)
            due[: self.geometry.piece_of(next_byte)] = np.inf
            np.minimum(least, due, out=least)
        return least

    def _in_index(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self._timemap.index)

    def _is_behind(self, reader: Reader, position: float) -> bool:
        return reader.follows and self._time_up_to(reader.offset) < position

    def _time_up_to(self, offset: int) -> float:
        if offset >= self.geometry.film_bytes:
            return self._timemap.duration
        return self._timemap.time_of(offset)
