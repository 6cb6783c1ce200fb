"""The server's own admission, asked about simulated streams. Pure."""

from collections import Counter
from collections.abc import Sequence

from experiments.arrays.audience import Stream
from experiments.arrays.scenario import ArrayScenario
from vodserver.http.admission import Admission, DiskFacts, Refusal, Situation, StreamAsk, Ticket
from vodserver.scheduling import DiskLoad
from vodserver.settings import ServeSettings

__all__ = ["Entrance"]

_LOOK_AHEAD = 2  # as in `vodserver.http.stream`


class Entrance:
    """Lets streams in, or not.

    Args:
        scenario: the array and its streams.
    """

    def __init__(self, scenario: ArrayScenario) -> None:
        self._scenario = scenario
        self._admission = Admission(busy_most=ServeSettings().disk_busy_percent / 100)
        self._tickets: dict[int, Ticket] = {}

    def admit(self, stream: Stream, loads: Sequence[DiskLoad], now: float) -> bool:
        """Whether a stream is let in, by what the scheduler knows of the disks."""
        scenario = self._scenario
        extents = stream.extents
        if scenario.watch_seconds is not None:
            extents = extents[: max(1, round(scenario.watch_seconds / scenario.extent_seconds))]
        groups = Counter(frozenset(disks) for disks in extents)
        ask = StreamAsk(
            scenario.stream_rate,
            scenario.watch_seconds or 1e6,
            scenario.unit_bytes,
            {group: n / len(extents) for group, n in groups.items()},
            extents[:_LOOK_AHEAD],
        )
        facts = {
            disk: DiskFacts(load.access_seconds, load.rate, load.expected_delay)
            for disk, load in enumerate(loads)
        }
        ticket = self._admission.ask(ask, Situation(facts), now)
        if isinstance(ticket, Refusal):
            return False
        self._tickets[id(stream)] = ticket
        return True

    def leave(self, stream: Stream) -> None:
        """A stream has ended."""
        self._admission.release(self._tickets.pop(id(stream)))
