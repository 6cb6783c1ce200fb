"""The egress cap: what the server sends in all, shared among those who want to send.

A token bucket (bytes) that fills at the cap. Streams that play already go first, since admission
gave them no more than there is; all others take turns, one chunk each, in the order of asking. A
connection has one chunk waiting at a time, so that every connection gets the same.

Pure: `now` is an argument, in seconds of any monotonic clock.
"""

import itertools
import math
from collections import OrderedDict

from vodserver.errors import ServeUsageError

__all__ = ["EgressCap"]


class EgressCap:
    """Grants leave to send, in turns.

    Args:
        rate: the cap, bytes per second.
        burst_seconds: how much of it may be saved up while nobody sends.
    """

    def __init__(self, rate: float, *, burst_seconds: float = 0.05) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise ServeUsageError(f"nothing can be sent at {rate} bytes per second")
        self.rate = rate
        self._burst = rate * burst_seconds
        self._level = self._burst
        self._filled_at: float | None = None
        self._urgent: OrderedDict[int, int] = OrderedDict()
        self._patient: OrderedDict[int, int] = OrderedDict()
        self._waiting_bytes = 0
        self._numbers = itertools.count(1)

    @property
    def waiting(self) -> int:
        """How many wait for leave."""
        return len(self._urgent) + len(self._patient)

    def take(self, count: int, now: float) -> bool:
        """Have leave for `count` bytes at once, if nobody waits and the bucket is not empty."""
        self._fill(now)
        if self.waiting or self._level < 0:
            return False
        self._level -= count
        return True

    def ask(self, count: int, *, urgent: bool = False) -> int:
        """Wait for leave to send `count` bytes.

        Returns:
            A number, by which `grant` will tell.
        """
        number = next(self._numbers)
        self._waiting_bytes += count
        (self._urgent if urgent else self._patient)[number] = count
        return number

    def forget(self, number: int) -> None:
        """Wait no longer."""
        for queue in (self._urgent, self._patient):
            self._waiting_bytes -= queue.pop(number, 0)

    def grant(self, now: float) -> list[int]:
        """The numbers of those who may send now, in their order; they wait no longer."""
        self._fill(now)
        granted = []
        # A chunk may be larger than the bucket: it goes when the bucket is not in debt.
        while self._level >= 0 and (queue := self._urgent or self._patient):
            number, count = queue.popitem(last=False)
            self._level -= count
            self._waiting_bytes -= count
            granted.append(number)
        return granted

    def next_time(self, now: float) -> float | None:
        """When `grant` has something to grant; None if nobody waits."""
        if not self.waiting:
            return None
        self._fill(now)
        return now + max(-self._level, 0.0) / self.rate

    def latest_time(self, now: float) -> float:
        """When everyone who waits now will have had their turn, if no more urgent one comes."""
        self._fill(now)
        return now + max(self._waiting_bytes - self._level, 0.0) / self.rate

    def _fill(self, now: float) -> None:
        if self._filled_at is not None:
            grown = self._level + self.rate * max(now - self._filled_at, 0.0)
            # A debt that was paid exactly is paid: rounding must not make anyone wait for it.
            self._level = min(0.0 if abs(grown) < 1e-6 * self.rate else grown, self._burst)
        self._filled_at = now if self._filled_at is None else max(now, self._filled_at)
