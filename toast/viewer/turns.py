"""Taking turns on the line to the server: what is waited for first, the next right behind it."""

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["Turn"]

_INITIAL_WINDOW: Final = 10 * 1460
"""Bytes that a new connection sends in its first round trip; twice that in the next (RFC 6928)."""

_AT_ONCE_BYTES: Final = 32 * 1024
"""So little is no reason to have others wait: it comes in one or two flights, whoever else asks,
and a film that begins with it needs the next bytes before another round trip is over."""


class Turn:
    """Requests whose bytes are waited for, and the moment at which others may ask.

    Two answers that come at once share the line, and each comes late. One that is asked for when
    the other has come leaves the line idle for a round trip. In between is the moment at which the
    last bytes of the first answer are as far away as the first bytes of the next one: at once if
    there are few, at the first bytes if the rest of them comes in the next flight.

    Args:
        requests: how many take this turn together.
        total_bytes: of all their answers.
        clock: monotonic seconds.
    """

    def __init__(self, requests: int, total_bytes: int, clock: Callable[[], float]) -> None:
        self._requests = requests
        self._left = total_bytes
        self._clock = clock
        self._asked_at = clock()
        self._first_at: float | None = None
        self._since_first = 0
        self._nearly = asyncio.Event()
        if requests <= 0 or total_bytes <= _AT_ONCE_BYTES:
            self._nearly.set()

    @property
    def is_over(self) -> bool:
        """Whether none of the requests is under way."""
        return self._requests <= 0

    @property
    def is_nearly_over(self) -> bool:
        """Whether others may ask."""
        return self._nearly.is_set()

    async def wait_nearly_over(self) -> None:
        """Wait until others may ask."""
        await self._nearly.wait()

    def received(self, size: int) -> None:
        """Bytes of one of the answers have come."""
        now = self._clock()
        self._left -= size
        if self._first_at is None:
            self._first_at = now
            if self._left <= 2 * _INITIAL_WINDOW * self._requests:
                self._nearly.set()
        else:
            self._since_first += size
        elapsed = now - self._first_at
        # The first answer's delay is that of a new connection: two round trips.
        round_trip = (self._first_at - self._asked_at) / 2
        if self._left <= 0 or (
            elapsed > 0 and self._left * elapsed <= self._since_first * round_trip
        ):
            self._nearly.set()

    def ended(self) -> None:
        """One of the requests has ended, well or not."""
        self._requests -= 1
        if self._requests <= 0:
            self._nearly.set()
