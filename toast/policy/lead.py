"""How far ahead of us whoever feeds us should watch.

The viewer just ahead is the most economical source: chained to the closest, all viewers together
need a single copy from the server. But what that one gets at the last moment itself, from the
server, comes to us with no more slack than its lead. If our horizon is longer, nothing of it can be
asked for: its uplink idles, and we go to the server in our turn. At half the film's rate a chain of
viewers two seconds apart gave an offload of 2 %, six seconds apart of 45 %.

So: the closest, however close, until it is seen that it starves us; then somebody ahead by more
than the horizon. Where viewers come at random, two who look for the same least lead would often
find the same one and share its uplink, while that of the closer one idles. The lead goes in
doublings, since each uplink should feed one viewer: those who want the same lead choose different
neighbours, while slightly different leads make two meet at one and none at the next.
"""

import math
from dataclasses import dataclass

__all__ = ["Lead", "LeadSettings"]


@dataclass(frozen=True, slots=True)
class LeadSettings:
    """When the closest neighbour ahead is too close."""

    memory_seconds: float = 12.0
    """Over about so long it is judged whether we starve; at first, over what there was."""
    least_seconds: float = 3.0
    """Sooner nothing is judged."""
    starved_share: float = 0.25
    """So much of that time with nothing to ask for, while pieces are left to the server: we do."""
    trial_seconds: float = 10.0
    """A wider lead is judged after so long: somebody has to be found, and to let us in."""
    most_seconds: float = 30.0
    """Nobody needs to be further ahead than this."""


class Lead:
    """Learns from what there is to ask for.

    Args:
        near_seconds: the least lead that is looked for once the closest one has starved us.
        piece_seconds: playing time of a piece.
        settings: see `LeadSettings`.

    Attributes:
        seconds: how far ahead of us somebody should watch; 0 to begin with.
    """

    def __init__(
        self, near_seconds: float, piece_seconds: float, settings: LeadSettings | None = None
    ) -> None:
        self.seconds = 0.0
        self._near_seconds = near_seconds
        self.settings = settings or LeadSettings()
        self._piece_seconds = piece_seconds
        self._seen = 0.0
        self._starved = 0.0
        self._was_starving = False
        self._at: float | None = None
        self._judged_from = -math.inf

    def observe(self, now: float, *, starving: bool, horizon: float) -> None:
        """Take note of the moment.

        Args:
            now: the time, seconds.
            starving: whether neighbours are asked for nothing while pieces are left to the server.
            horizon: seconds of slack below which no piece is asked of them.
        """
        settings = self.settings
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._seen = min(self._seen + elapsed, settings.memory_seconds)
        if self._seen > 0:
            # What was so at the last look was so until this one.
            weight = min(1.0, elapsed / self._seen)
            self._starved += (float(self._was_starving) - self._starved) * weight
        self._at, self._was_starving = now, starving
        if now < self._judged_from:
            self._seen = self._starved = 0.0
        elif (
            self._seen >= settings.least_seconds
            and self._starved > settings.starved_share
            and math.isfinite(horizon)
        ):
            self._widen(horizon + self._piece_seconds)
            self._judged_from = now + settings.trial_seconds

    def _widen(self, least: float) -> None:
        """Want somebody further ahead."""
        wider = max(self._near_seconds, 2 * self.seconds)
        while wider < least:
            wider *= 2
        if wider <= self.settings.most_seconds:
            self.seconds = wider
