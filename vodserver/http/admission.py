"""Which streams are let in: only those that every disk and the link can keep fed to their end.

The model is the thesis's (section 3.1): a read of an extent of `e` bytes costs a disk
t_a + e / r_d seconds, and a stream of rate r makes r / e of them in a second. It is applied disk
by disk, with what each has been seen to do, because disks differ, get sick and die, and because
films lie where placement put them. An extent with several replicas is read where the queue is
shortest, so its load is spread over their disks until those are equally busy.

Plain range requests are never refused here: they carry what viewers miss right now. What they
take is taken off what streams may have.

Pure: facts and `now` (seconds, monotonic) in, a ticket or a refusal out.
"""

import heapq
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "Admission",
    "AdmissionStatistics",
    "DiskFacts",
    "Refusal",
    "Situation",
    "StreamAsk",
    "Ticket",
    "disk_share",
]

_SWEEPS: Final = 12  # of levelling the disks; few groups are still moving after four
_SIGMAS: Final = 3.0
_LEAST_RETRY: Final = 1.0
_MOST_RETRY: Final = 120.0
_PLAIN_READ_BYTES: Final = 1 << 20
_LEAST_MISSES: Final = 0.5  # memory that serves today's viewers may not serve tomorrow's


def disk_share(rate: float, read_bytes: float, access_seconds: float, disk_rate: float) -> float:
    """The share of one disk's time that a stream takes: 1 / N of the thesis's model for D = 1.

    Args:
        rate: of the stream, bytes per second.
        read_bytes: that one access brings: r_c t_b in the model.
        access_seconds: t_a.
        disk_rate: r_d, bytes per second.
    """
    return rate / read_bytes * access_seconds + rate / disk_rate


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """A disk that is there.

    Attributes:
        access_seconds: t_a, as learned.
        rate: r_d in bytes per second, as learned.
        wait_seconds: what a read that is asked for now is expected to wait.
        background_share: part of its time that upkeep takes, in [0, 1).
    """

    access_seconds: float
    rate: float
    wait_seconds: float = 0.0
    background_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Situation:
    """What the server sees of itself now.

    Attributes:
        disks: every disk that works, by number.
        misses: share of the bytes sent that a disk had to read, in [0, 1].
        plain_rate: bytes per second that plain requests take.
    """

    disks: Mapping[int, DiskFacts]
    misses: float = 1.0
    plain_rate: float = 0.0


@dataclass(frozen=True, slots=True)
class StreamAsk:
    """A stream that someone wants.

    Attributes:
        rate: bytes per second, > 0.
        seconds: how long it will last.
        read_bytes: that one access of a disk brings: the size of an extent.
        groups: share of the film's extents by the set of disks that hold them; sums to 1.
        next_extents: disks of the first extents that it will read.
    """

    rate: float
    seconds: float
    read_bytes: float
    groups: Mapping[frozenset[int], float]
    next_extents: Sequence[Iterable[int]] = ()


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to stream, until released.

    Attributes:
        number: of its own.
        ask: what it was given for.
        ends_at: when the stream will have been sent.
    """

    number: int
    ask: StreamAsk = field(repr=False)
    ends_at: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """No leave to stream now.

    Attributes:
        reason: one clause for the client and the log.
        cause: `disks`, `egress`, `streams`, `replicas` or `queue`, for counters.
        retry_seconds: after which it is worth asking again.
    """

    reason: str
    cause: str
    retry_seconds: float


@dataclass(frozen=True, slots=True)
class AdmissionStatistics:
    """What was decided.

    Attributes:
        streams: that have a ticket now.
        rate: bytes per second that they take together.
        admitted: tickets given so far.
        refused: refusals so far, by cause.
    """

    streams: int
    rate: float
    admitted: int
    refused: Mapping[str, int]


@dataclass(slots=True)
class _Demand:
    """What streams ask of one set of disks, per second; and how far it strays about that.

    A stream that reads a share f of its extents here brings all of one read, or nothing: the
    variance of its reads is f (1 - f) times the square of one stream's.
    """

    reads: float = 0.0
    size: float = 0.0
    reads2: float = 0.0
    cross: float = 0.0
    size2: float = 0.0

    def add(self, ask: StreamAsk, share: float, sign: float = 1.0) -> None:
        reads, stray = ask.rate / ask.read_bytes, share * (1 - share)
        self.reads += sign * share * reads
        self.size += sign * share * ask.rate
        self.reads2 += sign * stray * reads * reads
        self.cross += sign * stray * reads * ask.rate
        self.size2 += sign * stray * ask.rate * ask.rate

    def on(self, disk: DiskFacts) -> float:
        """The share of the disk's time that all of it would take."""
        return (self.reads * disk.access_seconds + self.size / disk.rate) / _time_of(disk)

    def variance_on(self, disk: DiskFacts) -> float:
        access, per_byte = disk.access_seconds, 1 / disk.rate
        square = (
            self.reads2 * access**2 + 2 * self.cross * access * per_byte + self.size2 * per_byte**2
        )
        return max(square, 0.0) / _time_of(disk) ** 2


class Admission:
    """Gives tickets for streams, and takes them back.

    Args:
        busy_most: share of a disk's time that may be given away. The rest is for what the model
            does not see: the prototype of the thesis came within 11 % of it.
        egress_rate: bytes per second that the server may send in all; None for no limit.
        egress_most: share of that which may be given away; headers take a part of the rest.
        streams_most: most streams at a time.
        wait_most_seconds: a disk that holds the first extents may not keep a read waiting longer.
    """

    def __init__(
        self,
        *,
        busy_most: float = 0.85,
        egress_rate: float | None = None,
        egress_most: float = 0.95,
        streams_most: int = 10_000,
        wait_most_seconds: float = 2.5,
    ) -> None:
        self._busy_most = busy_most
        self._egress = math.inf if egress_rate is None else egress_rate * egress_most
        self._streams_most = streams_most
        self._wait_most = wait_most_seconds
        self._tickets: dict[int, Ticket] = {}
        self._demands: dict[frozenset[int], _Demand] = {}
        self._rate = 0.0
        self._numbers = itertools.count(1)
        self._admitted = 0
        self._refused: dict[str, int] = {}

    def ask(self, ask: StreamAsk, situation: Situation, now: float) -> Ticket | Refusal:
        """Decide on a stream.

        Returns:
            A ticket, to be released when the stream ends however it ends; or why not.
        """
        reason = (
            self._no_replica(ask, situation)
            or self._no_link(ask, situation)
            or self._no_queue(ask, situation)
            or self._no_disk(ask, situation)
        )
        if reason is not None:
            cause, text = reason
            self._refused[cause] = self._refused.get(cause, 0) + 1
            return Refusal(text, cause, self._retry_seconds(ask, now))
        ticket = Ticket(next(self._numbers), ask, now + ask.seconds)
        self._tickets[ticket.number] = ticket
        self._count(ask, 1.0)
        self._admitted += 1
        return ticket

    def release(self, ticket: Ticket) -> None:
        """Take a ticket back; once is enough, and more does no harm."""
        if self._tickets.pop(ticket.number, None) is None:
            return
        self._count(ticket.ask, -1.0)
        if not self._tickets:  # so that what rounding left does not add up over months
            self._demands.clear()
            self._rate = 0.0

    def statistics(self) -> AdmissionStatistics:
        """What was decided so far."""
        return AdmissionStatistics(
            len(self._tickets), max(self._rate, 0.0), self._admitted, dict(self._refused)
        )

    def busy(self, situation: Situation) -> dict[int, float]:
        """The share of each disk's time that is given away, with what plain requests take."""
        return self._levels(situation)[0]

    def _count(self, ask: StreamAsk, sign: float) -> None:
        self._rate += sign * ask.rate
        for group, share in ask.groups.items():
            self._demands.setdefault(group, _Demand()).add(ask, share, sign)

    def _no_replica(self, ask: StreamAsk, situation: Situation) -> tuple[str, str] | None:
        if any(situation.disks.keys().isdisjoint(group) for group in ask.groups):
            return "replicas", "a part of this film is on no disk that works now"
        return None

    def _no_link(self, ask: StreamAsk, situation: Situation) -> tuple[str, str] | None:
        if len(self._tickets) >= self._streams_most:
            return "streams", "as many films are being streamed as this server streams at a time"
        if self._rate + ask.rate + situation.plain_rate > self._egress:
            return "egress", "this server is sending as much as it may"
        return None

    def _no_queue(self, ask: StreamAsk, situation: Situation) -> tuple[str, str] | None:
        for disks in ask.next_extents:
            waits = [situation.disks[n].wait_seconds for n in disks if n in situation.disks]
            if waits and min(waits) > self._wait_most:
                return "queue", "the disks of this film have a queue now"
        return None

    def _no_disk(self, ask: StreamAsk, situation: Situation) -> tuple[str, str] | None:
        full = ("disks", "the disks of this film are as busy as they may be")
        for group in ask.groups:
            # However few there are: one stream reads one extent after another, from one disk each.
            alone = min(
                disk_share(ask.rate, ask.read_bytes, disk.access_seconds, disk.rate)
                / _time_of(disk)
                for number, disk in situation.disks.items()
                if number in group
            )
            if alone > self._busy_most:
                return full
        before, _ = self._levels(situation)
        self._count(ask, 1.0)
        after, stray = self._levels(situation)
        self._count(ask, -1.0)
        for number, busy in after.items():
            worse = busy > before[number] + 1e-12
            disk, most = situation.disks[number], self._busy_most
            if stray[number] > 1e-12:
                # Few large reads stray further than a normal distribution says: two more of them.
                one = disk_share(ask.rate, ask.read_bytes, disk.access_seconds, disk.rate)
                most = min(most, 1.0 - _SIGMAS * math.sqrt(stray[number]) - 2 * one)
            if worse and busy > most:
                return full
        return None

    def _levels(self, situation: Situation) -> tuple[dict[int, float], dict[int, float]]:
        """How busy each disk is and the variance of that, with the load of replicas levelled."""
        disks = situation.disks
        misses = max(situation.misses, _LEAST_MISSES)
        busy = dict.fromkeys(disks, 0.0)
        stray = dict.fromkeys(disks, 0.0)
        spread: list[dict[int, float]] = []  # busy share that all of a group takes, by disk
        for group, demand in self._groups(situation):
            there = [number for number in group if number in disks]
            costs = {number: misses * demand.on(disks[number]) for number in there}
            if len(there) == 1:
                # Nothing evens this out; two disks to choose from nearly do (Sanders 2000).
                busy[there[0]] += costs[there[0]]
                stray[there[0]] += misses * misses * demand.variance_on(disks[there[0]])
            elif there:
                spread.append({number: max(cost, 1e-12) for number, cost in costs.items()})
        _level(busy, spread)
        return busy, stray

    def _groups(self, situation: Situation) -> Iterable[tuple[frozenset[int], _Demand]]:
        yield from self._demands.items()
        if situation.plain_rate > 0 and situation.disks:
            rate = situation.plain_rate
            yield frozenset(situation.disks), _Demand(rate / _PLAIN_READ_BYTES, rate)

    def _retry_seconds(self, ask: StreamAsk, now: float) -> float:
        """When streams of this one's rate together will have ended."""
        freed = 0.0
        for ends_at, rate in heapq.nsmallest(
            64, ((ticket.ends_at, ticket.ask.rate) for ticket in self._tickets.values())
        ):
            freed += rate
            if freed >= ask.rate * (1 - 1e-9):
                return min(max(ends_at - now, _LEAST_RETRY), _MOST_RETRY)
        return _MOST_RETRY if self._tickets else 5.0


def _time_of(disk: DiskFacts) -> float:
    return max(1.0 - disk.background_share, 0.01)


def _level(busy: dict[int, float], groups: Sequence[Mapping[int, float]]) -> None:
    """Add each group's load to its disks, so divided that no share could wisely be moved.

    Args:
        busy: by disk; changed in place.
        groups: for each group, by disk, what all of its load would add to that disk.
    """
    parts: list[dict[int, float]] = [{} for _ in groups]
    for _ in range(_SWEEPS):
        moved = 0.0
        for group, part in zip(groups, parts, strict=True):
            for number, share in part.items():
                busy[number] -= share
            # Fill the emptiest disks up to one level: 1 = sum over them of (level - busy) / cost.
            level, inverse, filled = math.inf, 0.0, 0.0
            for number in sorted(group, key=busy.__getitem__):
                if busy[number] >= level:
                    break
                inverse += 1 / group[number]
                filled += busy[number] / group[number]
                level = (1 + filled) / inverse
            for number in group:
                share = max(level - busy[number], 0.0)
                moved = max(moved, abs(share - part.get(number, 0.0)))
                part[number] = share
                busy[number] += share
        if moved < 1e-4:
            break
