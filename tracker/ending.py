"""Ending tasks that may lose a cancellation."""

import asyncio
from collections.abc import Collection
from typing import Any, Final

__all__ = ["end_tasks"]

_AGAIN_SECONDS: Final = 0.05


async def end_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all have ended; what they raise is left.

    Again and again: redis-py loses a cancellation that comes while it connects, and so does an
    `asyncio.TaskGroup` of Python 3.11 in which another task fails at that moment.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at
