"""How fast something in the background may read."""

import asyncio
import time

__all__ = ["Pace"]


class Pace:
    """Keeps whoever asks it below a rate.

    Args:
        rate: bytes per second; None for as fast as it goes.
    """

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due = time.monotonic()

    async def wait(self, size: int) -> None:
        """Wait until `size` more bytes may be read."""
        if self._rate is None:
            return
        now = time.monotonic()
        if self._due > now:
            await asyncio.sleep(self._due - now)
        self._due = max(self._due, now) + size / self._rate
