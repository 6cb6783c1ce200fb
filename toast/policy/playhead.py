"""The playhead: where the viewer is in the film, and when each piece is due.

The source's StreamWatcher ("Toast", ch. 5), but an honest one: it halts where a byte is missing
instead of running on.

    STARTING --what is needed here has come--> PLAYING (or PAUSED, if asked meanwhile)
    PLAYING  --a needed piece is missing-----> STALLED --it has come--> PLAYING
    PLAYING, STALLED --pause--> PAUSED --resume--> PLAYING
    any --seek--> STARTING
    PLAYING --end of the film--> ENDED
"""

import math
from collections.abc import Mapping
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.policy.errors import PolicyError

__all__ = ["Playhead", "State"]

_ROUNDING_SECONDS = 0.002  # times in a .torrent are whole milliseconds


class State(Enum):
    """What the playhead does."""

    STARTING = "starting"
    PLAYING = "playing"
    PAUSED = "paused"
    STALLED = "stalled"
    ENDED = "ended"


class Playhead:
    """Follows one viewing of one film. All times are seconds; `now` is the caller's clock.

    Args:
        timemap: when each byte is needed.
        geometry: how the film is cut into pieces.
        opened_at: the moment from which waiting for the first picture counts.

    Attributes:
        opened_at: as given.
        start_seconds: from `opened_at` to the first picture, or None while there is none.
        seek_seconds: for each seek that was waited out: seconds from the seek to the picture.
        stalls: how often the film halted because a piece was missing.
        stalled_at: when each of them began, by the caller's clock.

    Raises:
        UsageError: time map and geometry are of different films.
    """

    def __init__(self, timemap: TimeMap, geometry: Geometry, opened_at: float = 0.0) -> None:
        self.opened_at = opened_at
        self.start_seconds: float | None = None
        self.seek_seconds: list[float] = []
        self.stalls = 0
        self.stalled_at: list[float] = []
        self._timemap = timemap
        self._geometry = geometry
        self._duration = timemap.duration
        self._due_whole = timemap.due_of_pieces(geometry)
        self._due = self._due_whole
        self._until = timemap.until_of_pieces(geometry)
        self._startup = np.zeros(geometry.pieces, dtype=np.bool_)
        for start, end in timemap.startup:
            pieces = geometry.pieces_of(start, end)
            self._startup[pieces.start : pieces.stop] = True
        self._startup_left = self._startup
        self._early: Mapping[int, NDArray[np.bool_]] = {}
        self._have = np.zeros(geometry.pieces, dtype=np.bool_)
        self._rate = 1.0
        self._state = State.STARTING
        self._pause_wanted = False
        self._position = 0.0
        self._at = opened_at
        self._waiting_since = opened_at  # of the present start, seek or stall
        self._tail = 0.0  # so much film before the position is needed too
        self._stalled_position = -1.0  # film time of the latest stall
        self._stall_seconds = 0.0  # of the stalls that are over

    @property
    def state(self) -> State:
        """What the playhead does, as of the last call that told the time."""
        return self._state

    @property
    def position(self) -> float:
        """Film time in seconds, as of the last call that told the time."""
        return self._position

    def position_at(self, now: float) -> float:
        """Film time in seconds that is reached by then, if nothing else happens."""
        return self._reach(now)[0]

    @property
    def rate(self) -> float:
        """Film seconds per second while playing."""
        return self._rate

    def stall_seconds(self, now: float) -> float:
        """How long the film has been halted by missing pieces; starts and seeks do not count."""
        if self._state is State.STALLED:
            return self._stall_seconds + max(0.0, now - self._waiting_since)
        return self._stall_seconds

    def tick(
        self,
        now: float,
        have: NDArray[np.bool_],
        early: Mapping[int, NDArray[np.bool_]] | None = None,
    ) -> None:
        """Bring the playhead to `now`, and tell it what is here since now.

        Up to `now` it runs on what was known before this call: call it whenever a piece comes.

        Args:
            now: the time; a time before the last one counts as the last one.
            have: bool[P], pieces that are here and verified. Copied.
            early: for pieces that are not complete, bool[blocks]: verified blocks that can be read.
        """
        self._advance(now)
        self._have = have.copy()
        self._note_early(early or {})
        self._settle()

    def _note_early(self, early: Mapping[int, NDArray[np.bool_]]) -> None:
        """A piece of which blocks can be read is due when the first of the others is."""
        self._early = early
        if not early:
            self._due, self._startup_left = self._due_whole, self._startup
            return
        self._due, self._startup_left = self._due_whole.copy(), self._startup.copy()
        for piece, blocks in early.items():
            due, until, startup = self._timemap.due_of_blocks(self._geometry, piece)
            self._startup_left[piece] &= bool((startup & ~blocks).any())
            left = ~blocks & (until > self._position - self._tail)
            self._due[piece] = due[left].min(initial=math.inf)

    def correct(self, now: float, time: float) -> None:
        """The player is elsewhere than thought, by little: no seek, only a better knowledge.

        Raises:
            PolicyError: the time is no number.
        """
        if not math.isfinite(time):
            raise PolicyError(f"a player cannot be at {time}: give a film time in seconds")
        self._advance(now)
        if self._state in (State.PLAYING, State.PAUSED, State.STALLED):
            self._position = min(max(time, 0.0), self._duration)
            self._note_early(self._early)
            self._settle()

    def lacks(self, time: float) -> bool:
        """Whether something is missing that is needed at a film time."""
        needed = (self._due <= time) & (self._until > time)
        return bool((needed & ~self._have).any())

    def pause(self, now: float) -> None:
        """Halt until `resume`. A start or a seek still waits for its pieces first."""
        self._advance(now)
        self._pause_wanted = True
        if self._state is State.STALLED:
            self._stall_seconds += self._at - self._waiting_since
        if self._state in (State.PLAYING, State.STALLED):
            self._state = State.PAUSED

    def resume(self, now: float) -> None:
        """Go on after `pause`."""
        self._advance(now)
        self._pause_wanted = False
        if self._state is State.PAUSED:
            self._state = State.PLAYING
            self._settle()

    def seek(self, now: float, time: float, *, from_key: bool = False) -> None:
        """Jump to a film time (clamped to the film): a new start from there.

        Args:
            now: the time.
            time: film time in seconds.
            from_key: whether to begin with the key frame before it, as far as one is known: what
                is awaited begins with the cell in which that frame begins.

        Raises:
            PolicyError: the time is no number.
        """
        if not math.isfinite(time):
            raise PolicyError(f"cannot seek to {time}: give a film time in seconds")
        self._advance(now)
        if self._state is State.STALLED:
            self._stall_seconds += self._at - self._waiting_since
        if self._state is not State.STARTING or self.start_seconds is not None:
            self._waiting_since = self._at
        self._state = State.STARTING
        key = self._timemap.key_before(time) if from_key else None
        self._tail = 0.0
        if key is not None:
            time, until = key
            # A key frame is decoded before it is shown, and begins behind the picture before it.
            self._tail = time - until + _ROUNDING_SECONDS
        self._position = min(max(time, 0.0), self._duration)
        self._stalled_position = -1.0
        self._note_early(self._early)
        self._settle()

    def set_rate(self, now: float, rate: float) -> None:
        """Play at another speed from now on: 1 is the film's own.

        Raises:
            PolicyError: the rate is not a positive number.
        """
        if not (math.isfinite(rate) and rate > 0):
            raise PolicyError(f"cannot play at a rate of {rate}: give a positive number, or pause")
        self._advance(now)
        self._rate = rate

    def slack(self, now: float) -> NDArray[np.float64]:
        """Seconds until each piece is due at the present rate, float64[P].

        <= 0: needed now, or overdue. +inf: behind the playhead. While nothing moves (paused,
        stalled, starting) it is counted as if the film went on from here at once.
        """
        position, _ = self._reach(now)
        slack = (self._due - position) / self._rate
        slack[self._until <= position - self._tail] = np.inf
        if self._awaits_startup():
            slack[self._startup_left] = np.minimum(slack[self._startup_left], 0.0)
        return slack

    def awaited_blocks(self, piece: int) -> NDArray[np.bool_]:
        """bool[blocks]: what of a piece the picture needs that is due now, or the first one."""
        due, until, startup = self._timemap.due_of_blocks(self._geometry, piece)
        awaited: NDArray[np.bool_] = (due <= self._position) & (until > self._position - self._tail)
        return awaited | startup if self._awaits_startup() else awaited

    def passed(self) -> NDArray[np.float64]:
        """Film seconds since the playhead left each piece, float64[P]; not positive before that."""
        return self._position - self._until

    def next_event(self, now: float, have: NDArray[np.bool_]) -> float:
        """Seconds from `now` until the playhead comes to a missing piece or to the end.

        +inf if it does not move: only a piece or a command changes anything then.
        """
        if self._state is not State.PLAYING:
            return math.inf
        position, _ = self._reach(now)
        return max(0.0, self._next_stop(position, have) - position) / self._rate

    def _next_stop(self, position: float, have: NDArray[np.bool_]) -> float:
        """Film time >= position at which something is missing, or the end."""
        blocking = ~have & (self._until > position - self._tail)
        first = float(self._due[blocking].min(initial=self._duration))
        return max(position, first)

    def _reach(self, now: float) -> tuple[float, float]:
        """Where the playhead is at `now`, and when it got there, by what is known."""
        if self._state is not State.PLAYING:
            return self._position, self._at
        ahead = self._position + (now - self._at) * self._rate
        stop = self._next_stop(self._position, self._have)
        if ahead < stop or now <= self._at:
            return max(ahead, self._position), max(now, self._at)
        return stop, min(now, self._at + (stop - self._position) / self._rate)

    def _advance(self, now: float) -> None:
        position, reached_at = self._reach(now)
        now = max(now, self._at)
        if self._state is State.PLAYING:
            self._position = position
            if position >= self._duration:
                self._state = State.ENDED
            elif reached_at < now:
                self._stall(reached_at)
        self._at = now

    def _stall(self, since: float) -> None:
        self._state = State.STALLED
        self._waiting_since = since
        if self._position != self._stalled_position:  # halting twice at one picture is one stall
            self.stalls += 1
            self.stalled_at.append(since)
            self._stalled_position = self._position

    def _awaits_startup(self) -> bool:
        """Whether the first picture of the film is what the viewer waits for."""
        return self._state is State.STARTING and self.start_seconds is None and self._position == 0

    def _settle(self) -> None:
        """Let what is here now decide whether the film runs."""
        missing = ~self._have
        blocked = (
            missing & (self._due <= self._position) & (self._until > self._position - self._tail)
        )
        if self._state is State.STARTING:
            if self._awaits_startup():
                blocked |= missing & self._startup_left
            if not blocked.any():
                self._start()
        elif self._state is State.STALLED:
            if not blocked.any():
                self._stall_seconds += self._at - self._waiting_since
                self._state = State.PLAYING
        elif self._state is State.PLAYING and blocked.any():
            self._stall(self._at)

    def _start(self) -> None:
        waited = self._at - self._waiting_since
        if self.start_seconds is None:
            self.start_seconds = waited
        else:
            self.seek_seconds.append(waited)
        self._state = State.PAUSED if self._pause_wanted else State.PLAYING
        if self._position >= self._duration:
            self._state = State.ENDED
