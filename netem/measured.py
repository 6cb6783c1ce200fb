"""What was seen between two hosts, beside what was asked for. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from netem.model import Arrivals
from netem.topology import Path

__all__ = ["SURE_95", "SURE_99", "Expected", "Measured", "distance", "share_interval"]

_RTT_SHARE: Final = 0.01
_RTT_SECONDS: Final = 0.0003
_RATE_SHARE: Final = 0.03
SURE_95: Final = 1.959964
SURE_99: Final = 2.575829
_KOLMOGOROV_99: Final = 1.628  # critical distance times sqrt(n), two-sided
_SPREAD_SHARE: Final = 0.05
"""How far the distribution of round trips may be off: programs and timers have a spread, too."""
_OVERTAKING_SHARE: Final = 0.15
"""How far the share of overtaken packets may be off: it hangs on how evenly they are sent."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the engine that shapes packets makes of the same trial.

    Attributes:
        round_trips: seconds, of many.
        loss: share of packets lost one way.
        inflation: variance of a count of losses over that of independent ones.
        duplicates: share of packets that come once more.
        reordered: share of packets that come after a later one.
        corrupted: share of packets that come changed.
        rate: bytes per second of a flood that arrive; None without limit.
    """

    round_trips: tuple[float, ...]
    loss: float
    inflation: float
    duplicates: float
    reordered: float
    corrupted: float
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was seen between two hosts.

    Attributes:
        sender: the host that sent.
        receiver: the host that answered.
        asked: what the topology says.
        expected: what follows from it.
        pings: echoes sent.
        round_trips: seconds of those answered.
        stream: what came of numbered packets, one way.
        rate: bytes per second that arrived of somewhat more than the limit; None if there is no
            limit.
    """

    sender: str
    receiver: str
    asked: Path
    expected: Expected
    pings: int
    round_trips: tuple[float, ...]
    stream: Arrivals
    rate: float | None

    @property
    def round_trip_seconds(self) -> float | None:
        """Median; None if no echo was answered."""
        return median(self.round_trips) if self.round_trips else None

    @property
    def round_trip_p95_seconds(self) -> float | None:
        """95 % were faster."""
        trips = sorted(self.round_trips)
        return trips[int(len(trips) * 0.95)] if trips else None

    @property
    def spread_distance(self) -> float | None:
        """How far the distribution of round trips is from the one expected, medians aligned.

        The largest difference of the two distribution functions (Kolmogorov, Smirnov); None where
        no jitter is asked for.
        """
        if not self.asked.jitter_seconds or not self.round_trips:
            return None
        return distance(_centred(self.round_trips), _centred(self.expected.round_trips))

    def wrong(self) -> list[str]:
        """What is not as asked for, in words; empty if all is."""
        return [
            words
            for words in (
                self._wrong_round_trip(),
                self._wrong_spread(),
                self._wrong_share("lost", self.stream.lost, self.expected.loss),
                self._wrong_share("come twice", self.stream.duplicates, self.expected.duplicates),
                self._wrong_share("come corrupt", self.stream.corrupted, self.expected.corrupted),
                self._wrong_share(
                    "are overtaken",
                    self.stream.reordered,
                    self.expected.reordered,
                    slack=_OVERTAKING_SHARE,
                ),
                self._wrong_rate(),
            )
            if words
        ]

    def _wrong_round_trip(self) -> str | None:
        seen = self.round_trip_seconds
        if seen is None:
            return "no echo was answered"
        wanted = median(self.expected.round_trips)
        # By its own error, and by that of a sample of so many: a median's standard error is
        # 1 / (2 density sqrt(n)), and the density in the middle is at least 1 / (4 jitter).
        allowed = max(wanted * _RTT_SHARE, _RTT_SECONDS)
        allowed += SURE_99 * self.asked.jitter_seconds / math.sqrt(len(self.round_trips))
        if abs(seen - wanted) <= allowed:
            return None
        return f"the round trip takes {seen * 1e3:.2f} ms, not {wanted * 1e3:.2f}"

    def _wrong_spread(self) -> str | None:
        far = self.spread_distance
        if far is None or far <= _KOLMOGOROV_99 / math.sqrt(len(self.round_trips)) + _SPREAD_SHARE:
            return None
        return f"round trips do not spread as asked: their distribution is {far:.2f} off"

    def _wrong_share(
        self, what: str, seen: int, wanted: float, *, slack: float = 0.0
    ) -> str | None:
        inflation = self.expected.inflation if what == "lost" else 1.0
        low, high = share_interval(self.stream.sent, seen, inflation=inflation)
        if low * (1 - slack) <= wanted <= high * (1 + slack):
            return None
        return f"{seen / self.stream.sent:.2%} of packets {what}, not {wanted:.2%}"

    def _wrong_rate(self) -> str | None:
        if (limit := self.expected.rate) is None:
            return None
        if self.rate is None:
            return "nothing arrived of a flood"
        if abs(self.rate - limit) <= limit * _RATE_SHARE:
            return None
        return f"the rate is {self.rate:.0f} bytes/s, not {limit:.0f}"


def share_interval(
    trials: int, hits: int, *, sure: float = SURE_99, inflation: float = 1.0
) -> tuple[float, float]:
    """Between which shares the true one lies (Wilson's score interval).

    Args:
        trials: how many.
        hits: how many of them.
        sure: standard deviations to either side: `SURE_95` or `SURE_99`.
        inflation: variance of the count over that of independent trials.
    """
    share, squared = hits / trials, sure * sure * inflation
    middle = (share + squared / (2 * trials)) / (1 + squared / trials)
    half = math.sqrt(squared) / (1 + squared / trials)
    half *= math.sqrt(share * (1 - share) / trials + squared / (4 * trials * trials))
    # Exactly 0 and 1 at the ends: rounding must not exclude what was asked for.
    low = max(0.0, middle - half) if hits else 0.0
    return low, min(1.0, middle + half) if hits < trials else 1.0


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Largest difference of two samples' distribution functions."""
    left, right = sorted(one), sorted(other)
    far, at, beside = 0.0, 0, 0
    while at < len(left) and beside < len(right):
        here = min(left[at], right[beside])
        while at < len(left) and left[at] <= here:
            at += 1
        while beside < len(right) and right[beside] <= here:
            beside += 1
        far = max(far, abs(at / len(left) - beside / len(right)))
    return far


def _centred(values: Sequence[float]) -> list[float]:
    middle = median(values)
    return [value - middle for value in values]
