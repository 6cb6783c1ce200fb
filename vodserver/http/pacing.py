"""How fast a film is sent to a client that plays it: the deficit rule, and its relatives.

The source (001, fig. 2; thesis, section 3.2) sends one time slot of film at once, the client's
initial buffer, and then a slot per slot's time. What a slow send exceeds its slot by is the
connection's deficit, and the next slots are sent faster until it is paid. Summed up, that is a
timetable: the client should at any time hold as much film ahead of its playing as it was given at
the start. Whatever is behind the timetable may go at once; whatever is ahead of it waits.

The timetable advances in quanta, much shorter than a slot, so that the network sees a stream and
not a burst every five seconds. A second of it holds one quantum more or less than it should at
most: a quantum of 40 ms keeps every second within 4 % of the rate.

Pure: `now` is an argument, in seconds of any monotonic clock.
"""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np

from toast.common.registry import Registry
from toast.common.timemap import TimeMap
from vodserver.errors import ServeUsageError

__all__ = [
    "LEADS",
    "ConstantRate",
    "Curve",
    "FixedLead",
    "GrowingLead",
    "Lead",
    "MapCurve",
    "Pace",
    "Starvation",
]

_TINY: Final = 1e-9  # what rounding may do to a sum of quanta


class Curve(Protocol):
    """What a client plays when: bytes of the answer against film time since its first byte."""

    def time_of(self, count: int) -> float:
        """Film seconds that the first `count` bytes last; grows strictly with them."""
        ...

    def bytes_at(self, seconds: float) -> int:
        """How many bytes are played within so many film seconds, rounded down."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """A film of one bit rate.

    Attributes:
        rate: bytes per second, > 0.
    """

    rate: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise ServeUsageError(f"a film cannot be sent at {self.rate} bytes per second")

    def time_of(self, count: int) -> float:
        """See `Curve.time_of`."""
        return count / self.rate

    def bytes_at(self, seconds: float) -> int:
        """See `Curve.bytes_at`."""
        return int(seconds * self.rate + _TINY * self.rate)


class MapCurve:
    """A film's own bit-rate curve, from its time map.

    Args:
        time_map: of the film.
        start: byte of the film at which the answer begins.
        speed: film seconds per second, > 0.
    """

    def __init__(self, time_map: TimeMap, start: int = 0, *, speed: float = 1.0) -> None:
        self._times, self._places = _knots(time_map)
        self._start = start
        self._speed = speed
        self._begin = float(np.interp(start, self._places, self._times))

    def time_of(self, count: int) -> float:
        """See `Curve.time_of`."""
        time = float(np.interp(self._start + count, self._places, self._times))
        return (time - self._begin) / self._speed

    def bytes_at(self, seconds: float) -> int:
        """See `Curve.bytes_at`."""
        place = np.interp(self._begin + seconds * self._speed, self._times, self._places)
        return max(int(place + 1e-6) - self._start, 0)


@functools.lru_cache(maxsize=64)
def _knots(time_map: TimeMap) -> tuple[np.ndarray, np.ndarray]:
    """Film times and the places in the file that they belong to, both strictly rising."""
    cells = time_map.due.size
    front = np.append(np.maximum.accumulate(time_map.due), time_map.duration)
    # Cells that are due together are played together; a microsecond apart, both ways exist.
    times = np.maximum.accumulate(front) + np.arange(cells + 1) * 1e-6
    places = np.minimum(np.arange(cells + 1) * float(time_map.cell_bytes), time_map.film_bytes)
    return times, places


class Lead(Protocol):
    """How far ahead of its playing a client is to be, by the time since the answer began.

    Attributes:
        name: what settings call it.
        initial_seconds: film that is sent at once.
    """

    name: ClassVar[str]

    @property
    def initial_seconds(self) -> float: ...  # noqa: D102 - documented in the class

    def at(self, elapsed: float) -> float:
        """Film seconds ahead, at so many seconds since the start; `elapsed + at` never falls."""
        ...

    def reached(self, film: float) -> float:
        """The earliest elapsed second at which `elapsed + at(elapsed)` is so many film seconds."""
        ...


@dataclass(frozen=True, slots=True)
class FixedLead:
    """The source's rule: always as much ahead as the initial buffer.

    Attributes:
        initial_seconds: that buffer.
    """

    name: ClassVar[str] = "deficit"
    initial_seconds: float = 5.0

    def at(self, elapsed: float) -> float:  # noqa: ARG002 - it does not change
        """See `Lead.at`."""
        return self.initial_seconds

    def reached(self, film: float) -> float:
        """See `Lead.reached`."""
        return max(film - self.initial_seconds, 0.0)


@dataclass(frozen=True, slots=True)
class GrowingLead:
    """Fast while the client has little, slower as it has more (Sammy, SIGCOMM 2023).

    The pace falls in a line from `empty_factor` times the film's rate with nothing buffered to
    `full_factor` times with `full_seconds`; once there, it is the film's rate. A pace p for a
    buffer x lets it grow by dx/dt = p(x) - 1, of which the solution is an exponential.

    Attributes:
        initial_seconds: film that is sent at once.
        full_seconds: a full buffer.
        empty_factor: pace when the buffer is empty, > `full_factor`.
        full_factor: pace when it is full, > 1.
    """

    name: ClassVar[str] = "growing"
    initial_seconds: float = 0.0
    full_seconds: float = 30.0
    empty_factor: float = 3.0
    full_factor: float = 1.5

    def __post_init__(self) -> None:
        if not 1 < self.full_factor < self.empty_factor or self.full_seconds <= 0:
            raise ServeUsageError("pacing needs 1 < full factor < empty factor, and a buffer")

    def at(self, elapsed: float) -> float:
        """See `Lead.at`."""
        if self.initial_seconds >= self.full_seconds:
            return self.initial_seconds
        slope = (self.empty_factor - self.full_factor) / self.full_seconds
        limit = (self.empty_factor - 1) / slope
        grown = limit + (self.initial_seconds - limit) * math.exp(-slope * max(elapsed, 0.0))
        return min(grown, self.full_seconds)

    def reached(self, film: float) -> float:
        """See `Lead.reached`."""
        low, high = max(film - self.full_seconds, 0.0), max(film - self.initial_seconds, 0.0)
        if self.initial_seconds >= self.full_seconds:
            return high
        for _ in range(50):  # halving: a sum of a line and an exponential has no simple inverse
            if high - low <= 1e-6:
                break
            middle = (low + high) / 2
            low, high = (low, middle) if middle + self.at(middle) >= film else (middle, high)
        return high


LEADS: Final[Registry[Lead]] = Registry("pacing", ServeUsageError)
"""Every way of pacing by its name."""

LEADS.register(FixedLead.name, FixedLead)
LEADS.register(GrowingLead.name, GrowingLead)


@dataclass(frozen=True, slots=True)
class Starvation:
    """What a client that plays at the film's rate went through.

    Attributes:
        incidents: times that its buffer was empty before the end.
        seconds: that it waited then, until it had its initial buffer again.
    """

    incidents: int
    seconds: float


class Pace:
    """The timetable of one answer, and the account of the client that plays it.

    The timetable begins, and the client begins to play, when the initial buffer has been sent: how
    long that took is no deficit. When the client's buffer is empty it starves, until it has as much
    again; what is sent counts as received, so a client whose connection is slow is only seen as far
    as the connection pushes back.

    Args:
        rate: bytes per second of the film.
        slot_seconds: the time slot.
        initial_slots: how many of them are sent at once.
        length: bytes of the answer, if it has an end.
        quantum_seconds: step of the timetable.
        curve: what is played when, if not at `rate` throughout.
        lead: how far ahead the client is kept, if not always as far as at the start.
    """

    def __init__(
        self,
        rate: float,
        slot_seconds: float = 5.0,
        initial_slots: float = 1.0,
        *,
        length: int | None = None,
        quantum_seconds: float = 0.04,
        curve: Curve | None = None,
        lead: Lead | None = None,
    ) -> None:
        if not (quantum_seconds > 0 and slot_seconds > 0 and initial_slots >= 0):
            raise ServeUsageError("pacing needs a slot and a quantum longer than nothing")
        self._rate = rate
        self._curve: Curve = curve or ConstantRate(rate)
        self._lead: Lead = lead or FixedLead(slot_seconds * initial_slots)
        self._quantum = quantum_seconds
        self._length = length
        self._initial = self._capped(self._curve.bytes_at(self._lead.initial_seconds))
        self.restart()

    def restart(self) -> None:
        """Begin anew: for the next answer of a connection."""
        self._start: float | None = None
        self._sent = 0
        self._playing = False
        self._position = 0.0
        self._since = 0.0
        self._starved_at: float | None = None
        self._incidents = 0
        self._starved = 0.0

    @property
    def sent_bytes(self) -> int:
        """What was sent so far."""
        return self._sent

    @property
    def quantum_bytes(self) -> int:
        """What a step of the timetable brings, on the mean: best sent at a time."""
        return max(math.ceil(self._rate * self._quantum), 1)

    def urgent(self, now: float) -> bool:
        """Whether the client plays, so that what is due to it is due now.

        One that has nothing left, or that paused for so long that it seems so, is not.
        """
        self._play(now)
        return self._playing

    def allowed(self, now: float) -> int:
        """How many more bytes may be sent now."""
        start = self._begin(now)
        if start is None:
            return self._initial - self._sent
        elapsed, first = now - start, self._lead.initial_seconds
        film = max(elapsed + self._lead.at(elapsed) - first, 0.0)
        steps = math.floor(film / self._quantum + _TINY)
        return max(
            self._capped(self._curve.bytes_at(first + steps * self._quantum)) - self._sent, 0
        )

    def when(self, count: int, now: float) -> float:
        """The time from which `count` more bytes may be sent; `now` if they may already.

        What begins in the initial buffer may go, also where it ends beyond.
        """
        start, wanted = self._begin(now), self._capped(self._sent + count)
        if start is None or self.allowed(now) >= wanted - self._sent:
            return now
        first = self._lead.initial_seconds
        steps = math.ceil((self._curve.time_of(wanted) - first) / self._quantum - _TINY)
        return max(start + self._lead.reached(first + steps * self._quantum), now)

    def sent(self, count: int, now: float) -> None:
        """Take note that `count` more bytes were sent."""
        self._play(now)
        self._sent += count
        self._begin(now)
        wanted = self._curve.bytes_at(self._position + self._lead.initial_seconds)
        if not self._playing and self._sent >= max(self._capped(wanted), 1):
            self._playing, self._since = True, now
            if self._starved_at is not None:
                self._starved += now - self._starved_at
                self._starved_at = None

    def starvation(self, now: float) -> Starvation:
        """What the client went through until now."""
        self._play(now)
        waiting = 0.0 if self._starved_at is None else now - self._starved_at
        return Starvation(self._incidents, self._starved + waiting)

    def buffered_seconds(self, now: float) -> float:
        """Film seconds that the client holds and has not played."""
        self._play(now)
        return self._curve.time_of(self._sent) - self._position

    def _begin(self, now: float) -> float | None:
        """When the timetable began: with the end of the initial buffer; None before that."""
        if self._start is None and self._sent >= self._initial:
            self._start = now
        return self._start

    def _capped(self, count: int) -> int:
        return count if self._length is None else min(count, self._length)

    def _play(self, now: float) -> None:
        """Let the client play until now, or until its buffer is empty."""
        if not self._playing:
            return
        have = self._curve.time_of(self._sent)
        empty_at = self._since + (have - self._position)
        if now <= empty_at + _TINY:
            self._position += max(now - self._since, 0.0)
            self._since = max(now, self._since)
            return
        self._playing, self._position = False, have
        if self._length is None or self._sent < self._length:  # else it has seen everything
            self._incidents += 1
            self._starved_at = empty_at
