"""Waiting for an event with a limit, without losing a cancellation."""

import asyncio
import contextlib

__all__ = ["wait_event"]


async def wait_event(event: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set, at most so many seconds; clear it. Returns whether it was set.

    Not `asyncio.wait_for`: before Python 3.12 that swallows a cancellation which comes in the same
    turn of the loop as the event, and the task then runs on for ever.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    was_set = event.is_set()
    event.clear()
    return was_set
