"""What neighbours can still bring, and when, by what each was seen to do.

Libtorrent has an estimate of its own (`download_queue_time`), but it divides bytes by a rate in
other units, and it knows nothing of who is silent. So: the bytes asked of a neighbour and not yet
come are its backlog; at the rate at which it was seen to send they take so long; what is asked now
comes after them. One who keeps us choked, or has sent nothing for a while though it was asked, is
not counted on at all.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["AskedOf", "EstimateSettings", "Prospects", "Unasked", "UplinkMemory", "Uplinks"]

_MEMORY_SECONDS = 4.0
_LEAST_SECONDS = 0.25

AskedOf = Callable[[int], NDArray[np.intp]]
"""For a piece, intp[B]: which neighbour (its place in `Uplinks`) each block is on its way from; -1
where it is not."""
Unasked = Callable[[int], tuple[int, Sequence[int]]]
"""For a piece in flight: bytes of it that are neither here nor on their way, and from whom (places
in `Uplinks`) the others are."""


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """How neighbours are judged."""

    silent_seconds: float = 2.0
    """One who was asked and has sent nothing for so long is not counted on: a request waits for a
    second in a queue that moves, whatever the rate."""
    unproven_share: float = 1.0
    """The rate of one who never sent anything yet, as a share of the film's."""
    safety_factor: float = 1.5
    """A block asked for now is taken to come after this many times what its neighbour's queue and
    rate say: one that just misses the hand-over is sent twice."""
    hopeless_factor: float = 4.0
    """Neighbours who would need this many times what is left cannot bring a piece in time. One who
    is only a little too slow brings a part of it, and the estimate may be wrong."""


@dataclass(eq=False, slots=True)
class Uplinks:
    """What is known of each of N neighbours as a source.

    Attributes:
        rates: bytes/second at which it was seen to send to us; NaN if it never did.
        queued_bytes: asked of it and not yet come.
        choking: it takes no requests from us.
        silent_seconds: since it last sent something, or was first asked if that is later; 0 while
            nothing is asked of it.
        has: bool[P] of each, the pieces that it has: lent, not copied.
    """

    rates: Sequence[float]
    queued_bytes: Sequence[float]
    choking: Sequence[bool]
    silent_seconds: Sequence[float]
    has: Sequence[NDArray[np.bool_]]

    @classmethod
    def none(cls) -> "Uplinks":
        """Nobody is there."""
        return cls((), (), (), (), ())


class _Meter:
    """The rate of one neighbour: an average that forgets, over the time in which it was asked.

    Unlike libtorrent's own averages it does not begin at zero, so it is right from the first
    moments on: what is thought slow for some seconds is passed over for some seconds.
    """

    __slots__ = ("_at", "_busy", "_bytes", "_heard_at", "_received", "_seconds")

    def __init__(self) -> None:
        self._bytes = 0.0
        self._seconds = 0.0
        self._received = 0
        self._busy = False
        self._at = 0.0
        self._heard_at = 0.0

    def observe(self, now: float, received: int, *, busy: bool) -> tuple[float, float]:
        """The rate in bytes/second, NaN while there is none, and the seconds of silence."""
        elapsed, came = now - self._at, received - self._received
        keep = math.exp(-elapsed / _MEMORY_SECONDS)
        # The first answer takes a round trip: only what comes after it tells of the rate.
        if self._busy and self._received > 0:
            self._bytes = self._bytes * keep + came
            self._seconds = self._seconds * keep + elapsed
        elif not self._busy:
            # An idle link says nothing of its speed: what was slow is not asked, and would be
            # thought slow for ever.
            self._bytes *= keep
            self._seconds *= keep
        if came > 0 or not self._busy:
            self._heard_at = now
        self._at, self._received, self._busy = now, received, busy
        known = self._seconds >= _LEAST_SECONDS
        return self._bytes / self._seconds if known else math.nan, now - self._heard_at


class UplinkMemory:
    """Remembers of each neighbour how fast it sent, and when it last did."""

    def __init__(self) -> None:
        self._meters: dict[Hashable, _Meter] = {}

    def observe(  # noqa: PLR0917 - one array per column of `Uplinks`
        self,
        now: float,
        who: Sequence[Hashable],
        received_bytes: Sequence[int],
        queued_bytes: Sequence[int],
        choking: Sequence[bool],
        has: Sequence[NDArray[np.bool_]],
    ) -> Uplinks:
        """What is known of those who are connected now; all others are forgotten.

        Args:
            now: the time, seconds.
            who: N names that stay the same while they are connected.
            received_bytes: what each has sent since it was connected.
            queued_bytes: asked of each and not yet come.
            choking: whether each takes no requests.
            has: bool[P] of each, the pieces that it has.
        """
        known = self._meters
        self._meters = {name: known.get(name) or _Meter() for name in who}
        rates, silent = [], []
        for meter, received, queued in zip(
            self._meters.values(), received_bytes, queued_bytes, strict=True
        ):
            rate, seconds = meter.observe(now, received, busy=queued > 0)
            rates.append(rate)
            silent.append(seconds)
        return Uplinks(rates, queued_bytes, choking, silent, has)


class Prospects:
    """What can be expected of the neighbours at one moment.

    They are few: lists are quicker here than arrays.

    Args:
        uplinks: what is known of them.
        film_rate: bytes of film per second.
        settings: how they are judged.

    Attributes:
        live: for each of the N, whether it is counted on.
        rate: bytes/second that those among them were seen to send who ever did; None if none did.
    """

    __slots__ = ("_drain", "_has", "_rates", "live", "rate")

    def __init__(self, uplinks: Uplinks, film_rate: float, settings: EstimateSettings) -> None:
        self._has = uplinks.has
        self.live: list[bool] = []
        self._rates: list[float] = []
        self._drain: list[float] = []
        proven: list[float] = []
        for seen, queued, choking, silent in zip(
            uplinks.rates,
            uplinks.queued_bytes,
            uplinks.choking,
            uplinks.silent_seconds,
            strict=True,
        ):
            unproven = math.isnan(seen)
            rate = settings.unproven_share * film_rate if unproven else seen
            live = not choking and silent <= settings.silent_seconds and rate > 0
            if live and not unproven:
                proven.append(rate)
            self.live.append(live)
            self._rates.append(rate if live else 0.0)
            self._drain.append(queued / rate if live else math.inf)
        self.rate = sum(proven) if proven else None

    def is_stuck(self, asked: Iterable[int]) -> bool:
        """Whether any block is on its way from somebody who is not counted on.

        Args:
            asked: of whom blocks were asked, places in `Uplinks`.
        """
        live = self.live
        for place in asked:  # noqa: SIM110 - they are one or two: a generator costs more
            if not live[place]:
                return True
        return False

    def open(self) -> list[tuple[NDArray[np.bool_], float]]:
        """Of those who are counted on: the pieces that each has, and its rate in bytes/second."""
        rows = zip(self._has, self._rates, self.live, strict=True)
        return [(has, rate) for has, rate, live in rows if live]

    def next_block(self, pieces: Sequence[int], block_bytes: int) -> list[float]:
        """Seconds until a block that is asked for now is here, for each piece; +inf if from nobody.

        Args:
            pieces: of which pieces.
            block_bytes: its size.
        """
        soonest = [math.inf] * len(pieces)
        for row, live, drain, rate in zip(
            self._has, self.live, self._drain, self._rates, strict=True
        ):
            if live:
                seconds = drain + block_bytes / rate
                for place, piece in enumerate(pieces):
                    if seconds < soonest[place] and row[piece]:
                        soonest[place] = seconds
        return soonest

    def soonest(self, pieces: Sequence[int], sizes: Sequence[float]) -> list[float]:
        """The soonest that each of some pieces can be here from neighbours, seconds.

        As if those who are counted on sent these pieces in this order, each piece by all who have
        it together, after what they were asked for already, and nothing else. No picker asks so
        well: what this finds too late is too late. +inf where nobody who is counted on has it.

        Args:
            pieces: first those that are due first.
            sizes: bytes of each that have not been asked for.
        """
        free_at, rates = list(self._drain), self._rates
        live = [(n, row) for n, row in enumerate(self._has) if self.live[n]]
        soonest = []
        for piece, size in zip(pieces, sizes, strict=True):
            who = [n for n, row in live if row[piece]]
            if len(who) == 1:
                n = who[0]
                free_at[n] = done = free_at[n] + size / rates[n]
            elif who:
                done = _done_together([(free_at[n], rates[n]) for n in who], size)
                for n in who:
                    free_at[n] = max(free_at[n], done)
            else:
                done = math.inf
            soonest.append(done)
        return soonest


def _done_together(senders: list[tuple[float, float]], size: float) -> float:
    """When several have sent so many bytes, each beginning when it is free and all ending at once.

    Args:
        senders: when each is free, and its rate in bytes/second; one at least.
        size: bytes in all.
    """
    senders.sort(key=_free_at)
    begins, together = senders[0]
    sent = 0.0
    for free_at, rate in senders[1:]:
        more = sent + (free_at - begins) * together
        if more > size:
            break
        begins, sent = free_at, more
        together += rate
    return begins + (size - sent) / together


def _free_at(sender: tuple[float, float]) -> float:
    return sender[0]
