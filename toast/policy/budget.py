"""How many bytes the VoD server may be asked for: per second on average, and in any 24 hours.

One budget may serve several films. As it gets short, what is fetched early shrinks first; what a
picture waits for goes on until nothing is left. Then peers carry the film alone, as far as they do.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from toast.policy.errors import PolicyError

__all__ = ["Allowance", "BudgetSettings", "OriginBudget"]

_DAY_SECONDS = 86_400.0
_SLOT_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What may be taken from the VoD server."""

    rate: float | None = None
    """Bytes per second on average; None: no limit."""
    burst_seconds: float = 20.0
    """How much of that may be taken at once, in seconds: a start must not wait for it."""
    day_bytes: int | None = None
    """Bytes in any 24 hours; None: no limit."""
    short_share: float = 0.25
    """Share of a budget below which less and less is fetched early."""

    def __post_init__(self) -> None:
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise PolicyError("the server's rate budget must be a positive number, or none at all")
        if self.day_bytes is not None and self.day_bytes < 0:
            raise PolicyError("the server's daily budget cannot be negative")
        if not (self.burst_seconds > 0 and 0 < self.short_share <= 1):
            raise PolicyError("a budget's burst must be positive, its short share within 0 to 1")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a budget allows at one moment.

    Attributes:
        bytes_left: most that may be asked for now.
        ease: 1 while there is plenty, falling to 0 as the budget runs out: how much of what could
            wait may be fetched early.
        wait_seconds: until more is allowed; 0 if something is allowed now.
    """

    bytes_left: float = math.inf
    ease: float = 1.0
    wait_seconds: float = 0.0


class OriginBudget:
    """Counts what the VoD server was asked for.

    Args:
        settings: see `BudgetSettings`.
        now: the time, seconds; any clock that does not jump, the same for all calls.
        state: what `export` gave in an earlier life, or None.
        away_seconds: how long ago that was.

    Attributes:
        spent_bytes: in this life.

    Raises:
        PolicyError: the state is not one of `export`.
    """

    def __init__(
        self,
        settings: BudgetSettings,
        now: float,
        *,
        state: dict[str, Any] | None = None,
        away_seconds: float = 0.0,
    ) -> None:
        self.settings = settings
        self.spent_bytes = 0
        self._at = now
        self._tokens = self._burst
        self._day: deque[tuple[float, int]] = deque()
        if state is not None:
            self._restore(state, max(0.0, away_seconds))

    def allowance(self, now: float) -> Allowance:
        """What may be asked for now."""
        self._advance(now)
        settings = self.settings
        left, ease, wait = math.inf, 1.0, 0.0
        if settings.rate is not None:
            # A request may overdraw it, so that any size passes; on average the rate holds.
            ease = self._tokens / (settings.short_share * self._burst)
            if self._tokens <= 0:
                left, wait = 0.0, -self._tokens / settings.rate + 0.01
        if settings.day_bytes is not None:
            of_day = max(0, settings.day_bytes - self.day_bytes)
            left = min(left, of_day)
            whole = settings.short_share * settings.day_bytes
            ease = min(ease, of_day / whole if whole else 0.0)
            if not of_day:
                oldest = self._day[0][0] if self._day else now
                wait = max(wait, oldest + _DAY_SECONDS - now)
        return Allowance(left, min(max(ease, 0.0), 1.0), wait)

    def spend(self, now: float, count: int) -> None:
        """So many bytes are being asked for."""
        self._advance(now)
        self.spent_bytes += count
        self._tokens -= count
        slot = math.floor(now / _SLOT_SECONDS) * _SLOT_SECONDS + _SLOT_SECONDS
        if self._day and self._day[-1][0] >= slot:
            count += self._day.pop()[1]
        self._day.append((slot, count))

    @property
    def day_bytes(self) -> int:
        """Asked for in the 24 hours before the last call that told the time."""
        return sum(count for _, count in self._day)

    def export(self, now: float) -> dict[str, Any]:
        """All that must be kept for `state` in another life: JSON-able."""
        self._advance(now)
        return {
            "tokens": self._tokens if math.isfinite(self._tokens) else None,
            "day": [[max(0.0, now - end), count] for end, count in self._day],
        }

    @property
    def _burst(self) -> float:
        rate = self.settings.rate
        return math.inf if rate is None else rate * self.settings.burst_seconds

    def _advance(self, now: float) -> None:
        elapsed = max(0.0, now - self._at)
        self._at = max(now, self._at)
        if self.settings.rate is not None:
            self._tokens = min(self._burst, self._tokens + elapsed * self.settings.rate)
        while self._day and self._day[0][0] <= self._at - _DAY_SECONDS:
            self._day.popleft()

    def _restore(self, state: dict[str, Any], away: float) -> None:
        try:
            tokens = math.inf if state["tokens"] is None else float(state["tokens"])
            day = [(float(age), int(count)) for age, count in state["day"]]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise PolicyError("the state of the server's budget cannot be read") from error
        if math.isnan(tokens) or not all(0 <= age < math.inf and n >= 0 for age, n in day):
            raise PolicyError("the state of the server's budget cannot be true")
        if self.settings.rate is not None:
            self._tokens = min(self._burst, tokens + away * self.settings.rate)
        ends = sorted((self._at - age - away, count) for age, count in day)
        self._day.extend(ends)
        self._advance(self._at)
