"""Waiting without losing a cancellation, and without taking the place of who is waited for."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["run_apart", "wait_event"]

T = TypeVar("T")


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


async def run_apart(work: Callable[..., T], *arguments: object) -> T:
    """Run blocking work in a thread of its own.

    For work that waits for the event loop, and so for other threads: in `asyncio.to_thread` a few
    such take all places of the pool, and what they wait for never gets one. Whoever is cancelled
    waits all the same until the work has ended, since it uses what the caller is about to close.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="apart")
    working = asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # looked at: nobody else will
        raise
    finally:
        pool.shutdown(wait=False)
