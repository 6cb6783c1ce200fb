"""What happens to a packet on one host's way out, or in: pure, with time and chance as arguments.

As NetEm does it (tc-netem(8)): it may come twice; each copy may be lost, or have a bit flipped; it
waits for its turn at the link's rate, or is dropped if that is too far off; it is delayed, or by
chance not, and then overtakes others. Packets with different jitter overtake one another, as they
do in NetEm. Two things are otherwise than there: the rate comes before the delay, not behind it,
which differs only in what jitter does to a full queue; and correlation is what it says (see
`_Deviations`).
"""

import heapq
import random
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

from netem.distributions import deviation
from netem.topology import MOST_WAITING_PACKETS, LatencyClass, Ways

__all__ = ["Fate", "Shaper", "flip_bit"]


class Fate(NamedTuple):
    """What becomes of one copy of a packet.

    Attributes:
        due: when it comes out.
        flip: which of its bits is flipped, as a share of all, in [0, 1); None: none.
    """

    due: float
    flip: float | None


class Shaper:
    """One direction of one host's link.

    Args:
        what: the class of the host.
        rng: all chance. The n-th packet's fate depends on its seed and n alone, which is why every
            shaper needs one of its own.
        rate: bytes per second, or None for no limit.
        is_plain: whether nothing but the rate matters.

    Attributes:
        passed: packets let through, copies included.
        lost: packets lost by chance.
        dropped: packets that found the queue full.
        duplicated: packets that came twice.
        corrupted: packets with a flipped bit.
        reordered: packets that were not delayed.
    """

    def __init__(
        self, what: LatencyClass, rng: random.Random, *, rate: float | None, is_plain: bool = False
    ) -> None:
        self._random = rng.random
        self._seconds_per_byte = 0.0 if rate is None else 1.0 / rate
        self._queue = what.queue_seconds
        self._free_at = 0.0
        self._limit = what.limit_packets
        self._waiting: list[float] = []
        self._delay = 0.0 if is_plain else what.delay_seconds
        self._loss = None if is_plain else _losses(what, rng.random)
        self._deviation = None
        if what.jitter_seconds and not is_plain:
            self._deviation = _Deviations(what, rng)
        self._duplicate = 0.0 if is_plain else what.duplicate
        self._corrupt = 0.0 if is_plain else what.corrupt
        self._reorder = 0.0 if is_plain else what.reorder
        self._gap = what.reorder_gap
        self._since_reordered = 0
        self.passed = self.lost = self.dropped = 0
        self.duplicated = self.corrupted = self.reordered = 0

    @classmethod
    def sending(cls, what: LatencyClass, rng: random.Random) -> "Shaper":
        """The way out of a host of a class."""
        return cls(what, rng, rate=what.rate)

    @classmethod
    def receiving(cls, what: LatencyClass, rng: random.Random) -> "Shaper | None":
        """The way into a host of a class; None if nothing happens there."""
        if what.download is None and what.ways is not Ways.BOTH:
            return None
        return cls(what, rng, rate=what.download, is_plain=what.ways is not Ways.BOTH)

    def fates(self, now: float, size: int) -> tuple[Fate, ...]:
        """What becomes of a packet that goes in now: empty if it never comes out.

        Args:
            now: seconds, of any clock that does not go back.
            size: bytes, IP header included.
        """
        copies = 1
        if self._duplicate and self._random() < self._duplicate:
            self.duplicated += 1
            copies = 2
        # All chance is drawn first, so that a full queue does not shift what befalls later ones.
        drawn = [self._draw() for _ in range(copies)]
        found = []
        for is_lost, flip, delay in drawn:
            if is_lost:
                self.lost += 1
            elif (begins := self._turn(now, size)) is None:
                self.dropped += 1
            else:
                self.corrupted += flip is not None
                found.append(Fate(begins + delay, flip))
                if self._limit < MOST_WAITING_PACKETS:
                    heapq.heappush(self._waiting, begins + delay)
        self.passed += len(found)
        return tuple(found)

    def _draw(self) -> tuple[bool, float | None, float]:
        """Whether it is lost, which bit is flipped, and its delay."""
        is_lost = self._loss is not None and self._loss()
        flip = None
        if self._corrupt and self._random() < self._corrupt:
            flip = self._random()
        delay = self._delay
        if self._deviation is not None:
            delay = max(0.0, delay + self._deviation.next())
        if self._reorder:
            chance = self._random()
            self._since_reordered += 1
            if self._since_reordered >= self._gap and chance < self._reorder:
                self._since_reordered = 0
                self.reordered += 1
                delay = 0.0
        return is_lost, flip, delay

    def _turn(self, now: float, size: int) -> float | None:
        """When the link's rate has let it out; None if there is no room to wait."""
        waiting = self._waiting
        while waiting and waiting[0] <= now:
            heapq.heappop(waiting)
        if len(waiting) >= self._limit:
            return None
        if not self._seconds_per_byte:
            return now
        begins = max(now, self._free_at)
        if begins - now > self._queue:
            return None
        self._free_at = begins + size * self._seconds_per_byte
        return self._free_at


class _Deviations:
    """Deviations from the mean delay, one after the other.

    With correlation each is drawn by a normal variable that keeps so much of the one before (a
    first-order autoregression), and is then read as a share of chance: so the distribution stays
    what was asked for. NetEm mixes the shares themselves, and then uses only the low bits of the
    mixture, in which nothing is left of the one before.
    """

    def __init__(self, what: LatencyClass, rng: random.Random) -> None:
        self._jitter = what.jitter_seconds
        self._distribution = what.distribution
        self._keep = what.correlation
        self._rng = rng
        self._normal = NormalDist()
        self._last = rng.gauss() if self._keep else 0.0

    def next(self) -> float:
        """Seconds."""
        if not self._keep:
            return self._jitter * deviation(self._distribution, self._rng.random())
        fresh = (1.0 - self._keep * self._keep) ** 0.5
        self._last = self._keep * self._last + fresh * self._rng.gauss()
        chance = min(self._normal.cdf(self._last), 1.0 - 1e-12)
        return self._jitter * deviation(self._distribution, chance)


def _losses(what: LatencyClass, chance: Callable[[], float]) -> Callable[[], bool] | None:
    """Whether the next packet is lost; None if none ever is."""
    if what.bursts is None:
        loss = what.loss
        return (lambda: chance() < loss) if loss else None
    bursts, is_bad = what.bursts, False

    def next_one() -> bool:
        nonlocal is_bad
        was_bad = is_bad
        if chance() < (bursts.leave if was_bad else bursts.enter):
            is_bad = not was_bad
        return chance() < (bursts.bad if was_bad else bursts.good)

    return next_one


def flip_bit(packet: bytes, where: float) -> bytes:
    """The packet with one bit flipped; `where` is a share of all its bits, in [0, 1)."""
    bit = int(where * len(packet) * 8)
    changed = bytearray(packet)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
