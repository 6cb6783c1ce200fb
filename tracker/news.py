"""What one tracker tells others that serve the same swarms: who announced what. Pure.

All numbers are little-endian. A head (mark, version, wall clock in seconds, author, host), then for
each announce its info-hash, family, flags (1 complete, 2 completed just now, 4 stopped), silence
since and playhead in seconds (NaN: does not say), peer id and packed endpoint.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple

from tracker.errors import RequestError, TrackerError
from tracker.messages import Event
from tracker.shares import Membership
from tracker.state import Swarms
from tracker.swarm import LOOPBACK, WIDTHS

__all__ = ["MARK_BYTES", "Journal", "News", "Report", "encode_news", "read_news", "reports_of"]

MARK_BYTES: Final = 8
"""Bytes that name an author or a host."""

_HEAD: Final = Struct("<8sHd8s8s")
_MARK: Final = b"toastnws"
_VERSION: Final = 1
_REPORT: Final = Struct("<20sBBff20s")
_COMPLETE, _COMPLETED, _STOPPED = 1, 2, 4
_REPORTS_IN_ONE: Final = 400
"""About 25 kB: taking one in stops answers for two or three milliseconds."""

_FRESH_SECONDS: Final = 5.0
"""What is older comes from a time when nobody listened: then what is known already is newer."""


class Report(NamedTuple):
    """One announce, as far as others need it.

    Attributes:
        membership: which.
        peer_id: 20 bytes.
        heard: seconds.
        complete: it has the whole film.
        completed: it has said just now that it came to that.
        stopped: it has left.
        playhead: where in the film it was then, in seconds, or None.
    """

    membership: Membership
    peer_id: bytes
    heard: float
    complete: bool
    completed: bool = False
    stopped: bool = False
    playhead: float | None = None


class Journal:
    """What is to be told next: of each member the last announce alone.

    Args:
        most: reports kept; further ones are dropped, and told by the members' next announces.

    Attributes:
        dropped: reports for which there was no room.
    """

    def __init__(self, most: int) -> None:
        self.dropped = 0
        self._most = most
        self._reports: dict[Membership, Report] = {}

    def note(
        self,
        membership: Membership,
        peer_id: bytes,
        now: float,
        *,
        complete: bool,
        event: Event,
        playhead: float | None,
    ) -> None:
        """An announce was accepted."""
        if not membership[2] & 0xFFFF:
            return  # nobody can connect to port 0: it is told to nobody
        before = self._reports.get(membership)
        if before is None and len(self._reports) >= self._most:
            self.dropped += 1
            return
        completed = event is Event.COMPLETED or (before is not None and before.completed)
        self._reports[membership] = Report(
            membership,
            bytes(peer_id),
            now,
            complete,
            completed,
            event is Event.STOPPED,
            playhead,
        )

    def take(self) -> list[Report]:
        """Everything since the last time."""
        reports, self._reports = self._reports, {}
        return list(reports.values())


def reports_of(swarms: Swarms, now: float) -> Iterator[Report]:
    """All that is remembered, for one who has just come."""
    for info_hash, swarm in swarms.each(now):
        for kind, roster in swarm.living():
            for place in range(len(roster)):
                heard = roster.heard[place]
                playhead = heard - roster.began_at(place)
                yield Report(
                    (info_hash, kind // 2, roster.key_at(place)),
                    roster.id_at(place),
                    heard,
                    bool(kind % 2),
                    playhead=None if math.isnan(playhead) else playhead,
                )


def encode_news(
    reports: Iterable[Report], now: float, wall: float, author: bytes, host: bytes
) -> Iterator[bytes]:
    """Reports as messages of at most some 30 kB.

    Args:
        reports: what to tell.
        now: seconds, on the clock of the reports.
        wall: seconds since the epoch: others have another clock.
        author: 8 bytes that no other tracker has.
        host: 8 bytes that all trackers of this machine have, and no others.
    """
    head = _HEAD.pack(_MARK, _VERSION, wall, author, host)
    parts: list[bytes] = []
    for report in reports:
        info_hash, family, key = report.membership
        flags = _COMPLETE * report.complete
        flags |= _COMPLETED * report.completed | _STOPPED * report.stopped
        playhead = math.nan if report.playhead is None else report.playhead
        silence = max(0.0, now - report.heard)
        packed = _REPORT.pack(info_hash, family, flags, silence, playhead, report.peer_id)
        parts.append(packed + key.to_bytes(WIDTHS[family], "big"))
        if len(parts) == _REPORTS_IN_ONE:
            yield head + b"".join(parts)
            parts = []
    if parts:
        yield head + b"".join(parts)


@dataclass(frozen=True, slots=True)
class News:
    """A message that was read.

    Attributes:
        author: who wrote it.
        host: on which machine.
        reports: what it says; `heard` is on the reader's clock.
    """

    author: bytes
    host: bytes
    reports: tuple[Report, ...]

    def tell(self, swarms: Swarms, now: float, host: bytes) -> None:
        """Know it, too.

        Members on loopback are there for those alone who are on the same machine: from another
        one they are left out.

        Args:
            swarms: who is to know.
            now: seconds.
            host: the reader's.
        """
        for report in self.reports:
            membership = report.membership
            if membership[1] >= LOOPBACK and self.host != host:
                continue
            try:
                if now - report.heard < _FRESH_SECONDS:
                    swarms.hear(
                        membership,
                        report.peer_id,
                        now,
                        complete=report.complete,
                        event=_event(report),
                        playhead=report.playhead,
                    )
                elif not report.stopped:
                    swarms.recall(
                        membership,
                        report.peer_id,
                        report.heard,
                        now,
                        complete=report.complete,
                        counted=report.complete,
                        playhead=report.playhead,
                    )
            except RequestError:
                pass  # there is no room for its swarm, or it is none of ours


def read_news(message: bytes, now: float, wall: float) -> News:
    """Read a message.

    Args:
        message: as `encode_news` makes it.
        now: seconds, on the reader's clock.
        wall: seconds since the epoch.

    Raises:
        TrackerError: it is no such message.
    """
    try:
        mark, version, written, author, host = _HEAD.unpack_from(message)
        if mark != _MARK or version != _VERSION:
            raise TrackerError("this is no message of a tracker of this version")
        age = wall - written
        reports = tuple(_reports(message, now - max(0.0, age if math.isfinite(age) else math.inf)))
    except (error, IndexError, ValueError) as cut:
        raise TrackerError("this message of a tracker is not whole") from cut
    return News(author, host, reports)


def _reports(message: bytes, written: float) -> Iterator[Report]:
    place = _HEAD.size
    while place < len(message):
        info_hash, family, flags, silence, playhead, peer_id = _REPORT.unpack_from(message, place)
        place += _REPORT.size
        endpoint = message[place : place + WIDTHS[family]]
        if len(endpoint) < WIDTHS[family] or not silence >= 0 or math.isinf(playhead):
            raise ValueError
        place += len(endpoint)
        yield Report(
            (info_hash, family, int.from_bytes(endpoint, "big")),
            peer_id,
            written - silence,
            bool(flags & _COMPLETE),
            bool(flags & _COMPLETED),
            bool(flags & _STOPPED),
            None if math.isnan(playhead) else playhead,
        )


def _event(report: Report) -> Event:
    if report.stopped:
        return Event.STOPPED
    return Event.COMPLETED if report.completed else Event.NONE
