"""What happens to a packet on one host's way out, or in: pure, with time and chance as arguments.

In this order, as NetEm does it (tc-netem(8)): it may be lost; it waits for its turn at the link's
rate, or is dropped if that is too far off; it takes its time on the wire; it is delayed. Packets
with different jitter overtake one another, as they do in NetEm.
"""

import random

from netem.topology import LatencyClass

__all__ = ["Shaper"]


class Shaper:
    """One direction of one host's link.

    Args:
        rng: decides about loss and jitter. The n-th packet's fate depends on its seed and n alone,
            which is why every shaper needs one of its own.
        rate: bytes per second, or None for no limit.
        queue_seconds: longest wait for one's turn.
        delay_seconds: mean.
        jitter_seconds: largest deviation, uniform.
        loss: fraction lost.

    Attributes:
        passed: packets let through.
        lost: packets lost by chance.
        dropped: packets that found the queue full.
    """

    __slots__ = (
        "_delay",
        "_free_at",
        "_jitter",
        "_loss",
        "_queue",
        "_random",
        "_seconds_per_byte",
        "dropped",
        "lost",
        "passed",
    )

    def __init__(
        self,
        rng: random.Random,
        *,
        rate: float | None,
        queue_seconds: float,
        delay_seconds: float = 0.0,
        jitter_seconds: float = 0.0,
        loss: float = 0.0,
    ) -> None:
        self._random = rng.random
        self._seconds_per_byte = 0.0 if rate is None else 1.0 / rate
        self._queue = queue_seconds
        self._delay = delay_seconds
        self._jitter = jitter_seconds
        self._loss = loss
        self._free_at = 0.0
        self.passed = self.lost = self.dropped = 0

    @classmethod
    def sending(cls, what: LatencyClass, rng: random.Random) -> "Shaper":
        """The way out of a host of a class."""
        return cls(
            rng,
            rate=what.rate,
            queue_seconds=what.queue_seconds,
            delay_seconds=what.delay_seconds,
            jitter_seconds=what.jitter_seconds,
            loss=what.loss,
        )

    @classmethod
    def receiving(cls, what: LatencyClass, rng: random.Random) -> "Shaper | None":
        """The way into a host of a class; None if nothing happens there."""
        if what.download is None:
            return None
        return cls(rng, rate=what.download, queue_seconds=what.queue_seconds)

    def due(self, now: float, size: int) -> float | None:
        """When a packet comes out that goes in now; None if it never does.

        Args:
            now: seconds, of any clock that does not go back.
            size: bytes, IP header included.
        """
        # Drawn for every packet, so that a full queue does not shift what befalls the next ones.
        if self._loss and self._random() < self._loss:
            self.lost += 1
            return None
        deviation = self._jitter * (2.0 * self._random() - 1.0) if self._jitter else 0.0
        if self._seconds_per_byte:
            begins = max(now, self._free_at)
            if begins - now > self._queue:
                self.dropped += 1
                return None
            now = self._free_at = begins + size * self._seconds_per_byte
        self.passed += 1
        return now + self._delay + deviation
