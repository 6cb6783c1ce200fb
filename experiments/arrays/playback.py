"""What a paced client goes through: its buffer, and when that is empty. Pure.

As the server's own account (`vodserver.http.pacing.Pace`), for what comes in whole reads: a client
plays when it has its lead, starves when it has nothing left, and plays on when it has its lead
again. The server's timetable goes on meanwhile: what is late goes out at once.
"""

__all__ = ["Playback"]


class Playback:
    """One client's account.

    Args:
        lead_seconds: film that it is given before it plays.
        unit_seconds: film that a read brings.
        units: reads in its film; None if it has no end.

    Attributes:
        incidents: how long each starvation lasted, seconds; one that goes on is not there yet.
        received: reads that came.
        started: when it began to play; None before that.
    """

    __slots__ = (
        "_filled",
        "_lead",
        "_play",
        "_position",
        "_starved_at",
        "_unit",
        "_units",
        "incidents",
        "received",
        "started",
    )

    def __init__(self, lead_seconds: float, unit_seconds: float, units: int | None = None) -> None:
        self._lead = lead_seconds - 1e-9
        self._unit = unit_seconds
        self._units = units
        self._filled = 0.0
        self._position = 0.0
        self._play: float | None = None  # when the film's first second was due, as it plays now
        self._starved_at: float | None = None
        self.incidents: list[float] = []
        self.received = 0
        self.started: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all of the film was sent."""
        return self._units is not None and self.received >= self._units

    def due(self) -> float | None:
        """When the server's timetable has the next read asked for; None: as soon as it can."""
        if self.started is None:
            return None
        return self.started + (self.received + 1) * self._unit - self._lead - self._unit

    def empty_at(self) -> float:
        """When the client has nothing left if nothing comes; infinite while it does not play."""
        return float("inf") if self._play is None else self._play + self._filled

    def receive(self, now: float) -> bool:
        """A read came.

        Returns:
            Whether the client had starved for it.
        """
        starved = False
        if self._play is not None and now > self._play + self._filled + 1e-9:
            self._starved_at = self._play + self._filled
            self._position, self._play = self._filled, None
            starved = True
        self._filled += self._unit
        self.received += 1
        if self._play is None and (self._filled - self._position >= self._lead or self.is_complete):
            self._play = now - self._position
            if self.started is None:
                self.started = now
            if self._starved_at is not None:
                self.incidents.append(now - self._starved_at)
                self._starved_at = None
        return starved

    def end(self, now: float) -> None:
        """The run is over: a starvation that goes on counts as far as it went."""
        if self.is_complete:
            return
        if self._play is not None and now > self._play + self._filled + 1e-9:
            self.incidents.append(now - self._play - self._filled)
        elif self._starved_at is not None:
            self.incidents.append(now - self._starved_at)
            self._starved_at = None
