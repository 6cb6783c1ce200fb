"""Streams: films at the rate at which they are played, for as many as can be kept fed.

Here the pure engines meet the clock and the store: `pacing` says when a byte is due, `egress`
shares the cap, `admission` says who may begin.
"""

import asyncio
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from aiohttp import hdrs, web
from bencode2 import bdecode

from toast.common.errors import UsageError
from toast.common.ranges import RangePlan, plan_range
from toast.common.timemap import TimeMap
from toast.common.units import parse_rate
from vodserver.errors import ServeUsageError
from vodserver.http.admission import (
    Admission,
    DiskFacts,
    Refusal,
    Situation,
    StreamAsk,
    Ticket,
)
from vodserver.http.content import send_content
from vodserver.http.egress import EgressCap
from vodserver.http.metrics import HttpCounts, Sample
from vodserver.http.pacing import LEADS, MapCurve, Pace
from vodserver.http.sender import FilmSource
from vodserver.settings import ServeSettings
from vodserver.store import Title

__all__ = [
    "SENDING",
    "WRITTEN",
    "Gatekeeper",
    "SendLimit",
    "SharedCap",
    "Streams",
    "check_settings",
    "rate_asked_for",
    "send_stream",
]

_MOST_WAIT_SECONDS: Final = 0.25
_LOOK_AHEAD: Final = 2  # extents whose disks must not have a queue when a stream begins
_RATE_WINDOW_SECONDS: Final = 5.0

Clock = Callable[[], float]


class SharedCap:
    """The egress cap, with the clock: everything that HTTP sends passes one of these.

    Args:
        cap: the engine; None for no cap.
        clock: monotonic seconds.
    """

    def __init__(self, cap: EgressCap | None, clock: Clock = time.monotonic) -> None:
        self.cap = cap
        self._clock = clock
        self._granted: set[int] = set()

    @property
    def waiting(self) -> int:
        """How many answers wait for it."""
        return 0 if self.cap is None else self.cap.waiting

    def ask(self, count: int, *, urgent: bool) -> int | None:
        """Ask for leave to send; None if it is given at once, else a number to come back with."""
        if self.cap is None or self.cap.take(count, self._clock()):
            return None
        return self.cap.ask(count, urgent=urgent)

    def seconds_left(self, number: int) -> float:
        """How long to wait before asking again; 0.0 when leave is given."""
        assert self.cap is not None
        now = self._clock()
        self._granted.update(self.cap.grant(now))
        if number in self._granted:
            self._granted.discard(number)
            return 0.0
        latest = self.cap.latest_time(now) - now
        soonest = (self.cap.next_time(now) or now) - now
        # Somewhere between: those who asked later go later. Too early costs a look, no more.
        return min(max(soonest, latest / 4, 0.001), _MOST_WAIT_SECONDS)

    def forget(self, number: int) -> None:
        """Wait no longer."""
        if self.cap is not None:
            self.cap.forget(number)
        self._granted.discard(number)


class SendLimit:
    """How fast one answer may go out.

    Args:
        cap: the egress cap.
        pace: the timetable of a stream; None to go as fast as the cap lets it.
        clock: monotonic seconds.
    """

    def __init__(
        self, cap: SharedCap, pace: Pace | None = None, clock: Clock = time.monotonic
    ) -> None:
        self.pace = pace
        self.sent_bytes = 0
        """Of the answer's body, so far."""
        self._cap = cap
        self._clock = clock
        self._credit = 0
        self._asked: tuple[int, int] | None = None

    def wait(self, count: int) -> float:
        """How many seconds `count` more bytes have to wait; 0.0 if they may go now."""
        if self.pace is not None:
            now = self._clock()
            due = self.pace.when(count, now) - now
            if due > 0:
                return due
        if self._asked is None:
            need = count - self._credit
            if need <= 0:
                return 0.0
            urgent = self.pace is not None and self.pace.urgent(self._clock())
            number = self._cap.ask(need, urgent=urgent)
            if number is None:
                self._credit += need
                return 0.0
            self._asked = number, need
        number, need = self._asked
        left = self._cap.seconds_left(number)
        if left > 0:
            return left
        self._asked = None
        self._credit += need
        return 0.0 if self._credit >= count else self.wait(count)

    async def before(self, count: int) -> None:
        """Wait until `count` more bytes may go."""
        while (seconds := self.wait(count)) > 0:  # noqa: ASYNC110 - time itself is waited for
            await asyncio.sleep(seconds)

    def sent(self, count: int) -> None:
        """Take note that so many went out."""
        self._credit = max(self._credit - count, 0)
        self.sent_bytes += count
        if self.pace is not None:
            self.pace.sent(count, self._clock())

    def chunk_bytes(self, most: int) -> int:
        """How much to send at a time: what a quantum of the timetable brings, at most `most`."""
        return most if self.pace is None else max(min(self.pace.quantum_bytes, most), 1)

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._asked is not None:
            self._cap.forget(self._asked[0])
            self._asked = None


SENDING: Final = web.RequestKey("sending", SendLimit)
"""Where a stream's limit is found when it has been answered."""

WRITTEN: Final = web.RequestKey("written", int)
"""Bytes that went to the connection with an answer of a film."""


def rate_asked_for(text: str | None, title: Title, settings: ServeSettings) -> float:
    """The rate of a stream in bytes per second: `?rate=` within its bounds, or the film's own.

    Raises:
        UsageError: it is no rate, or out of bounds.
    """
    mean = title.film_bytes / title.duration
    if text is None:
        return mean
    rate = parse_rate(text[:32])
    least = mean * settings.stream_least_percent / 100
    most = mean * settings.stream_most_percent / 100
    if not least <= rate <= most:
        raise UsageError(
            f"this film is streamed at {math.ceil(least * 8)} to {math.floor(most * 8)} b/s: "
            "ask for a rate between"
        )
    return rate


class Gatekeeper(Protocol):
    """Who decides which streams are let in, where that is another process."""

    async def admit(
        self, title: Title, start: int, end: int, rate: float
    ) -> Callable[[], None] | Refusal:
        """Ask whether bytes [start, end) of a film may be streamed at a rate, from now on.

        Returns:
            What is to be called when the stream has ended, however it did; or why not.
        """
        ...


class Streams:
    """Lets streams in, paces them, and keeps account of them.

    Args:
        settings: of the server.
        disks: what each disk of the store tells of itself, by number; those that are there.
        sent_bytes: all that HTTP has sent so far.
        counts: where what happens is counted.
        gatekeeper: who lets streams in; this process itself if not given.
        streamed_bytes: what went out in streams so far; what did so here if not given.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: ServeSettings,
        *,
        disks: Callable[[], Mapping[int, Any]],
        sent_bytes: Callable[[], int],
        counts: HttpCounts,
        gatekeeper: Gatekeeper | None = None,
        streamed_bytes: Callable[[], int] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        lead = LEADS.create(settings.stream_pacing, initial_seconds=settings.stream_initial_seconds)
        self._lead = lead
        self._settings = settings
        self._disks = disks
        self._sent_bytes = sent_bytes
        self._counts = counts
        self._clock = clock
        self._gatekeeper = gatekeeper
        self._streamed_bytes = streamed_bytes or (lambda: self.streamed_bytes)
        rate = settings.egress_rate
        self.cap = SharedCap(None if rate is None else EgressCap(rate), clock)
        self.admission = Admission(
            busy_most=settings.disk_busy_percent / 100,
            egress_rate=rate,
            streams_most=settings.streams_limit,
        )
        self._groups: dict[str, tuple[object, Mapping[frozenset[int], float]]] = {}
        self._seen = (clock(), 0, 0, 0)  # when, bytes sent, of those in streams, read by disks
        self._plain_rate = 0.0
        self._misses = 1.0
        self._running: set[SendLimit] = set()
        self._ended_bytes = 0

    @property
    def streamed_bytes(self) -> int:
        """What went out in streams of this process so far."""
        return self._ended_bytes + sum(limit.sent_bytes for limit in self._running)

    async def let_in(
        self, title: Title, start: int, end: int, rate: float
    ) -> Callable[[], None] | Refusal:
        """Have it decided whether bytes [start, end) of a film may be streamed at a rate.

        Returns:
            What is to be called when the stream has ended, however it did; or why not.
        """
        if self._gatekeeper is not None:
            return await self._gatekeeper.admit(title, start, end, rate)
        ticket = self.admit(title, start, end, rate)
        if isinstance(ticket, Refusal):
            return ticket
        return functools.partial(self.admission.release, ticket)

    def admit(self, title: Title, start: int, end: int, rate: float) -> Ticket | Refusal:
        """Decide whether bytes [start, end) of a film may be streamed at a rate, from now on."""
        now = self._clock()
        first = start // title.extent_bytes
        ask = StreamAsk(
            rate,
            (end - start) / rate,
            min(title.extent_bytes, title.film_bytes),
            self.groups_of(title),
            [extent.disks for extent in title.extents[first : first + _LOOK_AHEAD]],
        )
        return self.admission.ask(ask, self.situation(now), now)

    def limit(self, title: Title, start: int, end: int, rate: float) -> SendLimit:
        """The timetable and the cap for an answer that was let in."""
        curve = None
        if self._settings.stream_by_time_map:
            speed = rate * title.duration / title.film_bytes
            time_map = TimeMap.from_bencodable(bdecode(title.timemap))
            curve = MapCurve(time_map, start, speed=speed)
        pace = Pace(
            rate,
            length=end - start,
            quantum_seconds=self._settings.stream_quantum_seconds,
            curve=curve,
            lead=self._lead,
        )
        limit = SendLimit(self.cap, pace, self._clock)
        self._running.add(limit)
        return limit

    def end(self, limit: SendLimit) -> None:
        """A stream has ended, however it did."""
        limit.close()
        self._running.discard(limit)
        self._ended_bytes += limit.sent_bytes
        if limit.pace is not None:
            starved = limit.pace.starvation(self._clock())
            if starved.incidents:
                self._counts.add("vod_streams_starved_total", starved.incidents)
                self._counts.add("vod_streams_starved_seconds_total", starved.seconds)

    def situation(self, now: float) -> Situation:
        """What the server sees of itself now."""
        disks = self._disks()
        self._look_at_load(now, sum(int(getattr(d, "read_bytes", 0)) for d in disks.values()))
        facts = {
            number: DiskFacts(
                float(getattr(disk, "access_seconds", 0.017)),
                float(getattr(disk, "rate", 525e6 / 8)),
                float(getattr(disk, "expected_delay_seconds", 0.0)),
            )
            for number, disk in disks.items()
            if not getattr(disk, "stalled", False)
        }
        return Situation(facts, self._misses, self._plain_rate)

    def samples(self) -> list[Sample]:
        """What `/metrics` says of streams."""
        told = self.admission.statistics()
        samples = [
            Sample("vod_streams", told.streams),
            Sample("vod_streams_rate_bytes", float(told.rate)),
            Sample("vod_streams_admitted_total", told.admitted),
        ]
        samples += [
            Sample("vod_streams_refused_total", count, (cause,))
            for cause, count in told.refused.items()
        ]
        if self.cap.cap is not None:
            samples.append(Sample("vod_egress_cap_bytes", float(self.cap.cap.rate)))
        busy = self.admission.busy(self.situation(self._clock()))
        samples += [
            Sample("vod_disk_given_ratio", float(share), (str(number),))
            for number, share in sorted(busy.items())
        ]
        return samples

    def _look_at_load(self, now: float, read: int) -> None:
        """Renew the rates that admission reckons with, by what was counted since the last look."""
        at, sent_before, streamed_before, read_before = self._seen
        seconds = now - at
        if seconds < 0.5:
            return
        sent = self._sent_bytes()
        streamed = self._streamed_bytes()
        grown = max(sent - sent_before, 0)
        plain = max(grown - (streamed - streamed_before), 0) / seconds
        fresh = 1 - math.exp(-seconds / _RATE_WINDOW_SECONDS)
        self._plain_rate += fresh * (plain - self._plain_rate)
        if grown:
            misses = min(max(read - read_before, 0) / grown, 1.0)
            self._misses += fresh * (misses - self._misses)
        self._seen = now, sent, streamed, read

    def groups_of(self, title: Title) -> Mapping[frozenset[int], float]:
        """The share of a film's extents that lies on each set of disks."""
        known = self._groups.get(title.id)
        if known is None or known[0] is not title.extents:
            count = Counter(frozenset(extent.disks) for extent in title.extents)
            shares = {group: n / len(title.extents) for group, n in count.items()}
            if len(self._groups) >= 1024:  # of films that were removed, too
                self._groups.clear()
            known = self._groups[title.id] = title.extents, shares
        return known[1]


async def send_stream(
    request: web.Request,
    source: FilmSource,
    title: Title,
    streams: Streams,
    settings: ServeSettings,
) -> web.StreamResponse:
    """Answer a GET or HEAD of a film's stream: as the film itself, only not faster than it plays.

    Raises:
        HTTPBadRequest: a rate is asked for that the film is not streamed at.
        HTTPServiceUnavailable: the stream is not let in, or the film cannot be read.
    """
    try:
        rate = rate_asked_for(request.query.get("rate"), title, settings)
    except UsageError as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from error
    plan = _plan(request, title)
    send = functools.partial(
        send_content, request, source, title, send_timeout=settings.send_timeout_seconds
    )
    if not plan.parts:
        return await send(chunk_bytes=settings.chunk_bytes)
    start = min(part.start for part in plan.parts)
    length = sum(part.end - part.start for part in plan.parts)
    leave = await streams.let_in(title, start, start + length, rate)
    if isinstance(leave, Refusal):
        raise refuse(leave)
    limit = None
    try:
        limit = request[SENDING] = streams.limit(title, start, start + length, rate)
        return await send(chunk_bytes=limit.chunk_bytes(settings.chunk_bytes), pacer=limit)
    finally:
        leave()
        if limit is not None:
            streams.end(limit)


def _plan(request: web.Request, title: Title) -> RangePlan:
    """Which bytes `send_content` will send; their framing makes no difference to a timetable."""
    return plan_range(
        request.method,
        {str(name): ", ".join(request.headers.getall(name)) for name in request.headers},
        length=title.film_bytes,
        etag=f'"{title.info_hash}"',
        last_modified=title.added,
        multipart=True,
    )


def refuse(refusal: Refusal) -> web.HTTPServiceUnavailable:
    """The answer to a stream that is not let in."""
    seconds = math.ceil(refusal.retry_seconds)
    return web.HTTPServiceUnavailable(
        text=f"{refusal.reason}: try again in {seconds} s\n",
        headers={hdrs.RETRY_AFTER: str(seconds)},
    )


def check_settings(settings: ServeSettings) -> None:
    """Refuse settings of streams that cannot be meant.

    Raises:
        ServeUsageError: which, and why.
    """
    if not 0 < settings.stream_least_percent <= 100 <= settings.stream_most_percent:
        raise ServeUsageError("stream_least_percent and stream_most_percent must have 100 between")
    if not 0 < settings.disk_busy_percent <= 100:
        raise ServeUsageError("disk_busy_percent must be between 1 and 100")
    LEADS.create(settings.stream_pacing, initial_seconds=settings.stream_initial_seconds)
