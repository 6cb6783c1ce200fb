"""What all workers did, summed up, those that are gone included. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from vodserver.errors import ChannelError
from vodserver.http.metrics import merge_counts

__all__ = ["Counts", "Tally"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one process that serves HTTP did so far, and what it does now.

    Attributes:
        bytes_sent: headers and contents.
        connections: open now.
        accepted: connections let in.
        refused: connections turned away.
        streamed_bytes: of those sent, the bytes of paced streams.
        dropped: entries that the access log could not take.
        waiting: answers that wait for the egress cap now.
        late: times that the event loop was late.
        lag_seconds: the most that it was late lately.
        answers: snapshot of `HttpCounts`.
    """

    bytes_sent: int = 0
    connections: int = 0
    accepted: int = 0
    refused: int = 0
    streamed_bytes: int = 0
    dropped: int = 0
    waiting: int = 0
    late: int = 0
    lag_seconds: float = 0.0
    answers: list[list[Any]] = field(default_factory=list)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Of what came over a channel.

        Raises:
            ChannelError: they are no counts.
        """
        try:
            return cls(**values)
        except TypeError as error:
            raise ChannelError("a worker told no counts") from error

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            bytes_sent=self.bytes_sent + other.bytes_sent,
            connections=self.connections + other.connections,
            accepted=self.accepted + other.accepted,
            refused=self.refused + other.refused,
            streamed_bytes=self.streamed_bytes + other.streamed_bytes,
            dropped=self.dropped + other.dropped,
            waiting=self.waiting + other.waiting,
            late=self.late + other.late,
            lag_seconds=max(self.lag_seconds, other.lag_seconds),
            answers=merge_counts([self.answers, other.answers]),
        )


class Tally:
    """Sums up what workers told last."""

    def __init__(self) -> None:
        self._past = Counts()
        self._now: dict[int, Counts] = {}

    def note(self, worker: int, counts: Counts) -> None:
        """A worker told what it did so far."""
        self._now[worker] = counts

    def end(self, worker: int) -> None:
        """A worker is gone: what it did stays, what it was doing is over."""
        last = self._now.pop(worker, None)
        if last is not None:
            self._past += replace(last, connections=0, waiting=0, lag_seconds=0.0)

    def total(self) -> Counts:
        """All of it."""
        total = Counts()
        for counts in self._each():
            total += counts
        return total

    @property
    def workers(self) -> int:
        """How many there are now, of those that have told something."""
        return len(self._now)

    @property
    def bytes_sent(self) -> int:
        """What all sent so far."""
        return sum(counts.bytes_sent for counts in self._each())

    @property
    def streamed_bytes(self) -> int:
        """What all sent so far in paced streams."""
        return sum(counts.streamed_bytes for counts in self._each())

    def _each(self) -> Iterator[Counts]:
        yield self._past
        yield from self._now.values()
