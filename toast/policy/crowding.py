"""Crowding: how many requests at once a server takes that answers some and turns others away.

A picture is waited for over many connections, and a server in demand has not that many for
everybody. That is no failure: what it does answer goes on, and what it turned away is asked for on
those connections when they are free. Only a server that answers nobody for long counts as down.
"""

import math
from dataclasses import dataclass

__all__ = ["Crowding", "CrowdingSettings"]


@dataclass(frozen=True, slots=True)
class CrowdingSettings:
    """How to go about with a crowded server. All in seconds."""

    first_wait_seconds: float = 0.1
    """When every request was turned away, one alone tries again after this; doubles each time."""
    most_wait_seconds: float = 1.0
    """Longest wait between such tries: others are told to go all the time."""
    patience_seconds: float = 3.0
    """Turned away for so long without any answer: the server counts as down."""
    calm_seconds: float = 0.5
    """So long after it last turned a request away the server is asked for one more at once, with
    each answer."""


class Crowding:
    """Follows one server.

    Args:
        settings: see `CrowdingSettings`.
    """

    def __init__(self, settings: CrowdingSettings | None = None) -> None:
        self._settings = settings or CrowdingSettings()
        self._width = math.inf
        self._refused_at = -math.inf
        self._alone_since: float | None = None
        self._waits = 0

    @property
    def width(self) -> float:
        """Requests that may be under way at once; +inf until one was turned away."""
        return self._width

    def answered(self, now: float) -> None:
        """The server has begun to answer a request."""
        self._alone_since = None
        self._waits = 0
        if now - self._refused_at >= self._settings.calm_seconds:
            self._width += 1

    def refused(self, now: float, answering: int) -> float | None:
        """The server has turned a request away.

        Args:
            now: the time.
            answering: how many others it is answering.

        Returns:
            Seconds until the next try, if it is the only one; None if the server counts as down.
        """
        self._refused_at = now
        # Several are turned away together: what they leave is the same.
        self._width = max(1, answering)
        if answering:
            self._alone_since = None
            return 0.0
        if self._alone_since is None:
            self._alone_since = now
        settings = self._settings
        if now - self._alone_since >= settings.patience_seconds:
            return None
        return min(settings.first_wait_seconds * 2.0**self._waits, settings.most_wait_seconds)

    def waited(self) -> None:
        """The one that tries alone tries again."""
        self._waits = min(self._waits + 1, 20)

    def reset(self) -> None:
        """Another server, or one that counts as down: nothing is known of it."""
        self._width = math.inf
        self._alone_since = None
        self._waits = 0
