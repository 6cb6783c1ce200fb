"""What the house sent and asked for of late, and what it may: kept from one life to the next."""

import contextlib
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from toast.daemon.schedule import day_of
from toast.daemon.settings import RuleSettings
from toast.policy.budget import BudgetSettings, OriginBudget
from toast.policy.errors import PolicyError

__all__ = ["Consumption"]


class Consumption:
    """Counts uploads by day of local time, and what VoD servers are asked for by the last 24 hours.

    Args:
        kept: what `export` gave in an earlier life, or None.
        zone: whose midnight ends a day.
        wall: Unix time.
        clock: monotonic seconds.

    Attributes:
        budget: what VoD servers may be asked for; all films spend from it.
        uploaded_bytes: sent to peers today.
    """

    def __init__(
        self,
        kept: Any,
        *,
        zone: tzinfo,
        wall: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._zone = zone
        self._wall = wall
        self._clock = clock
        self._day = day_of(wall(), zone)
        self.uploaded_bytes = 0
        self.budget = OriginBudget(BudgetSettings(), clock())
        # What is damaged counts as nothing: a day begins anew.
        with contextlib.suppress(KeyError, TypeError, ValueError, PolicyError):
            if kept["day"] == self._day:
                self.uploaded_bytes = max(0, int(kept["uploaded_bytes"]))
            self.budget = OriginBudget(
                BudgetSettings(), clock(), state=kept["budget"], away_seconds=wall() - kept["at"]
            )

    def use(self, rules: RuleSettings) -> None:
        """Keep to these rules from now on."""
        self.budget.settings = BudgetSettings(
            rate=rules.origin_rate, day_bytes=rules.origin_day_bytes
        )

    def sent(self, count: int) -> None:
        """So many bytes more were sent to peers."""
        day = day_of(self._wall(), self._zone)
        if day != self._day:
            self._day, self.uploaded_bytes = day, 0
        self.uploaded_bytes += count

    @property
    def origin_bytes(self) -> int:
        """Asked of VoD servers in the last 24 hours."""
        return self.budget.day_bytes

    def export(self) -> dict[str, Any]:
        """All that must be kept for another life: JSON-able."""
        return {
            "at": self._wall(),
            "day": self._day,
            "uploaded_bytes": self.uploaded_bytes,
            "budget": self.budget.export(self._clock()),
        }
