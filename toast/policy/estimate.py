"""What neighbours can still bring, and when, by what each was seen to do.

Libtorrent has an estimate of its own (`download_queue_time`), but it divides bytes by a rate in
other units, and it knows nothing of who is silent. So: the bytes asked of a neighbour and not yet
come are its backlog; at the rate at which it was seen to send they take so long; what is asked now
comes after them. One who keeps us choked, or has sent nothing for a while though it was asked, is
not counted on at all.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.policy.lookahead import PeerRate

__all__ = ["AskedOf", "EstimateSettings", "Prospects", "UplinkMemory", "Uplinks"]

AskedOf = Callable[[int], NDArray[np.intp]]
"""For a piece, intp[B]: which neighbour (its place in `Uplinks`) each block is on its way from; -1
where it is not."""


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """How neighbours are judged."""

    silent_seconds: float = 2.0
    """One who was asked and has sent nothing for so long is not counted on: a request waits for a
    second in a queue that moves, whatever the rate."""
    unproven_share: float = 1.0
    """The rate of one who never sent anything yet, as a share of the film's."""


@dataclass(frozen=True, eq=False, slots=True)
class Uplinks:
    """What is known of each of N neighbours as a source.

    Attributes:
        rates: float64[N], bytes/second at which it was seen to send to us; NaN if it never did.
        queued_bytes: float64[N], asked of it and not yet come.
        choking: bool[N], it takes no requests from us.
        silent_seconds: float64[N], since it last sent something, or was first asked if that is
            later; 0 while nothing is asked of it.
        has: bool[N, P], the pieces that it has.
    """

    rates: NDArray[np.float64]
    queued_bytes: NDArray[np.float64]
    choking: NDArray[np.bool_]
    silent_seconds: NDArray[np.float64]
    has: NDArray[np.bool_]

    @classmethod
    def none(cls, pieces: int) -> "Uplinks":
        """Nobody is there."""
        empty = np.empty(0)
        nobody = np.empty(0, dtype=np.bool_)
        return cls(empty, empty, nobody, empty, np.empty((0, pieces), dtype=np.bool_))


class UplinkMemory:
    """Remembers of each neighbour how fast it sent, and when it last did."""

    def __init__(self) -> None:
        self._rates: dict[Hashable, PeerRate] = {}
        self._heard: dict[Hashable, tuple[int, float]] = {}

    def observe(  # noqa: PLR0917 - one array per column of `Uplinks`
        self,
        now: float,
        who: Sequence[Hashable],
        rates: Sequence[float],
        queued_bytes: Sequence[int],
        received_bytes: Sequence[int],
        choking: Sequence[bool],
        has: NDArray[np.bool_],
    ) -> Uplinks:
        """What is known of those who are connected now; all others are forgotten.

        Args:
            now: the time, seconds.
            who: N names that stay the same while they are connected.
            rates: bytes/second at which each sends now.
            queued_bytes: asked of each and not yet come.
            received_bytes: what each has sent since it was connected.
            choking: whether each takes no requests.
            has: bool[N, P], the pieces that each has.
        """
        known, heard = self._rates, self._heard
        self._rates = {name: known.get(name) or PeerRate() for name in who}
        self._heard = {}
        remembered = np.empty(len(who))
        silent = np.zeros(len(who))
        for place, name in enumerate(who):
            busy = queued_bytes[place] > 0
            rate = self._rates[name]
            rate.observe(now, rates[place], busy=busy)
            remembered[place] = math.nan if rate.value is None else rate.value
            before, at = heard.get(name, (-1, now))
            if received_bytes[place] != before or not busy:
                at = now
            self._heard[name] = (received_bytes[place], at)
            silent[place] = now - at
        return Uplinks(
            rates=remembered,
            queued_bytes=np.asarray(queued_bytes, dtype=np.float64),
            choking=np.asarray(choking, dtype=np.bool_),
            silent_seconds=silent,
            has=has,
        )


class Prospects:
    """What can be expected of the neighbours at one moment.

    Args:
        uplinks: what is known of them.
        film_rate: bytes of film per second.
        settings: how they are judged.

    Attributes:
        live: bool[N], who is counted on.
    """

    def __init__(self, uplinks: Uplinks, film_rate: float, settings: EstimateSettings) -> None:
        self._uplinks = uplinks
        unproven = np.isnan(uplinks.rates)
        rates = np.where(unproven, settings.unproven_share * film_rate, uplinks.rates)
        self.live: NDArray[np.bool_] = (
            ~uplinks.choking & (uplinks.silent_seconds <= settings.silent_seconds) & (rates > 0)
        )
        self._rates = np.where(self.live, rates, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            drain = uplinks.queued_bytes / self._rates
        self._drain = np.where(self.live, drain, np.inf)
        self._all_rates = float(self._rates.sum())
        self._all_queued = float(uplinks.queued_bytes[self.live].sum())

    def is_stuck(self, asked_of: NDArray[np.intp]) -> bool:
        """Whether any block is on its way from somebody who is not counted on.

        Args:
            asked_of: intp[B], see `AskedOf`.
        """
        return bool((~self.live[asked_of[asked_of >= 0]]).any())

    def next_block(self, pieces: NDArray[np.intp], block_bytes: int) -> NDArray[np.float64]:
        """Seconds until a block that is asked for now is here, float64[k]; +inf if from nobody.

        Args:
            pieces: intp[k], of which pieces.
            block_bytes: its size.
        """
        if not self.live.any():
            return np.full(pieces.size, np.inf)
        with np.errstate(divide="ignore"):
            each = self._drain + block_bytes / self._rates
        having = self._uplinks.has[:, pieces]
        best: NDArray[np.float64] = np.where(having, each[:, None], np.inf).min(axis=0)
        return best

    def soonest(self, pieces: NDArray[np.intp], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The soonest that pieces can be here from neighbours, float64[k] seconds.

        A bound, not a forecast: as if everyone counted on sent these pieces in this order, each by
        all who have it together, and nothing else but what they were asked for already. What this
        finds too late is too late. +inf where nobody who is counted on has the piece.

        Args:
            pieces: intp[k], first those that are due first.
            sizes: float64[k], bytes of each that have not been asked for.
        """
        if not self.live.any():
            return np.full(pieces.size, np.inf)
        having = self._uplinks.has[:, pieces] & self.live[:, None]
        wait = np.where(having, self._drain[:, None], np.inf).min(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = wait + np.where(sizes > 0, sizes / (self._rates @ having), 0.0)
        together = (self._all_queued + np.cumsum(sizes)) / self._all_rates
        bound: NDArray[np.float64] = np.where(np.isinf(wait), np.inf, np.maximum(alone, together))
        return bound
