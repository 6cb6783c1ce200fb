"""Keeps the playhead where the players are: by what they read, and by what they tell."""

import math
from collections.abc import Callable
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import BLOCK_BYTES
from toast.policy.audience import Audience, Reader
from toast.policy.playhead import Playhead, State

__all__ = ["Attendance", "Pace"]

_TOLD_SECONDS = 5.0
_DRIFT_SECONDS = 0.3
_RESUME_SECONDS = 0.25
_REACHED_SECONDS = 0.02
_AWAITED_BYTES = 128 * 1024
"""How far a player that waits is taken to want to read at once: a key frame."""


class Pace(StrEnum):
    """What moves the playhead."""

    CLOCK = "clock"
    """Time alone: the film is watched from its start to its end, whether or not anybody looks."""
    READERS = "readers"
    """Those who read through the gateway: it halts where they have taken nothing further."""


class Attendance:
    """The players of one viewing.

    Args:
        playhead: which they move.
        audience: who reads.
        pace: what moves the playhead.
        changed: called when the playhead was moved.
    """

    def __init__(
        self, playhead: Playhead, audience: Audience, pace: Pace, changed: Callable[[], None]
    ) -> None:
        self.playhead = playhead
        self.audience = audience
        self._pace = pace
        self._changed = changed
        self._told_at = -math.inf
        self._halted = False
        self._is_placed = False  # whether the playhead is where a player is

    def open(self, now: float, offset: int) -> Reader:
        """A player begins to read: if that is elsewhere in the film, it has sought."""
        reader, seek_to = self.audience.open(now, offset, self.playhead.position)
        if seek_to is not None:
            self.playhead.seek(now, seek_to)
            self._release(now)
        self._changed()
        return reader

    def waits(self, reader: Reader, tell: Callable[[], None] | None = None) -> None:
        """A player wants more than is there; `tell` is called for that in place of `changed`."""
        if not reader.waiting:
            reader.waiting = True
            (tell or self._changed)()

    def taken(self, now: float, reader: Reader, offset: int) -> None:
        """A player has taken the film up to a byte."""
        self.audience.taken(now, reader, offset)
        if self._halted and self.audience.frontier > self.playhead.position + _RESUME_SECONDS:
            self._release(now)
            self._changed()

    def close(self, reader: Reader) -> None:
        """A player has left, or reads on elsewhere."""
        self.audience.close(reader)
        self._changed()

    @property
    def is_picture_awaited(self) -> bool:
        """Whether a picture waits: the first, one after a seek, or one that a player reads for."""
        return self.playhead.state is State.STARTING or bool(self._awaited_bytes())

    def awaited_blocks(self, piece: int) -> NDArray[np.bool_]:
        """bool[blocks]: what of a piece a picture waits for."""
        awaited = self.playhead.awaited_blocks(piece)
        base = self.audience.geometry.piece_start(piece)
        for offset in self._awaited_bytes():
            first, end = offset - base, offset - base + _AWAITED_BYTES
            if end > 0:
                awaited[max(0, first) // BLOCK_BYTES : -(-end // BLOCK_BYTES)] = True
        return awaited

    def _awaited_bytes(self) -> list[int]:
        return self.audience.waits_behind(self.playhead.position)

    def report_position(self, now: float, seconds: float, *, paused: bool, rate: float) -> None:
        """A player tells where it is.

        Args:
            now: the time.
            seconds: film time of what it shows.
            paused: whether it halts there.
            rate: film seconds per second while it does not.

        Raises:
            PolicyError: a number that is none.
        """
        playhead = self.playhead
        if rate != playhead.rate:
            playhead.set_rate(now, rate)
        away = abs(seconds - playhead.position)
        if not away <= self.audience.settings.jump_seconds:  # also what is no number
            playhead.seek(now, seconds)
            self.audience.sought(playhead.position)
        elif away > _DRIFT_SECONDS and not self._is_placed and playhead.lacks(seconds):
            # A player from before we began, killed and started again, plays on from its buffer.
            # That it is where we have nothing yet is no stall.
            playhead.seek(now, seconds)
        else:
            if away > _DRIFT_SECONDS:
                playhead.correct(now, seconds)
            self._is_placed |= self.audience.readers > 0 and playhead.state is State.PLAYING
        self._told_at = now
        self._halted = False
        if paused:
            playhead.pause(now)
        else:
            playhead.resume(now)
        self._changed()

    def follow(self, now: float) -> float:
        """Halt the playhead where its player has taken nothing further, or let it go on.

        Returns:
            Seconds until it must be looked at again; +inf if only an event changes anything.
        """
        if self._pace is Pace.CLOCK or now - self._told_at < _TOLD_SECONDS:
            return math.inf
        playhead, frontier = self.playhead, self.audience.frontier
        if self._halted:
            if frontier > playhead.position + _RESUME_SECONDS:
                self._release(now)
            return math.inf
        if playhead.state not in (State.PLAYING, State.STALLED) or self.audience.is_waiting:
            return math.inf
        left = (frontier - playhead.position) / playhead.rate
        if left > _REACHED_SECONDS:
            return left
        playhead.pause(now)
        self._halted = True
        return math.inf

    def _release(self, now: float) -> None:
        if self._halted:
            self._halted = False
            self.playhead.resume(now)
