"""What makes a viewer look again: at once, or when there is time for it."""

import asyncio

from toast.common.waiting import wait_event

__all__ = ["Wakes"]

_PATIENCE_SECONDS = 0.05


class Wakes:
    """The bell of the control loop.

    While what a picture waits for is on its way, each block that comes would ask for a decision,
    and nothing is left to decide: deciding then only takes the time in which the next block could
    be received. So news can be told to wait.
    """

    def __init__(self) -> None:
        self._any = asyncio.Event()
        self._urgent = asyncio.Event()

    def now(self) -> None:
        """Something happened that may change a decision."""
        self._urgent.set()
        self._any.set()

    def soon(self) -> None:
        """Something came that was on its way: it can wait while others of its kind are."""
        self._any.set()

    async def wait(self, seconds: float, *, is_hurrying: bool) -> None:
        """Wait until it is time to look.

        Args:
            seconds: at most so long, if nothing happens.
            is_hurrying: whether there is better to do than to look at what comes `soon`.
        """
        if await wait_event(self._any, seconds) and is_hurrying and not self._urgent.is_set():
            await wait_event(self._urgent, _PATIENCE_SECONDS)
        self._any.clear()
        self._urgent.clear()
