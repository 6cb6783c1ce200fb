"""Work that blocks, off the event loop: disks that may hang, and the catalog's commits."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from vodserver.store.catalog import CATALOG_NAME, Catalog
from vodserver.store.store import Store

__all__ = ["LINGER_SECONDS", "in_catalog", "in_thread", "to_the_end"]

T = TypeVar("T")

LINGER_SECONDS: Final = 20.0
"""How long a cancelled caller waits for what it began: longer than any write that works."""


async def in_thread(work: Callable[[], T], *, linger: float = LINGER_SECONDS) -> T:
    """Run a function that blocks in a thread of its own.

    A pool would be filled by one disk that hangs, and would keep the program from ending.
    Cancelled, it waits until the function has ended, so that what follows meets no surprise.

    Args:
        work: the function.
        linger: seconds that it waits so at most.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # there is one where no error is

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as caught:  # noqa: BLE001 - it is raised where it is awaited
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop ended first: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="upkeep", daemon=True).start()
    return await to_the_end(done, linger=linger)


async def to_the_end(
    work: "Coroutine[Any, Any, T] | asyncio.Future[T]", *, linger: float = LINGER_SECONDS
) -> T:
    """Await something that must not be left half done: a cancellation is raised when it ended."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task}, timeout=linger)
        raise


async def in_catalog(store: Store, work: Callable[[Catalog], T]) -> T:
    """Use the store's catalog, over a connection of its own, without keeping the loop waiting."""

    def run() -> T:
        with Catalog(store.path / CATALOG_NAME) as catalog:
            return work(catalog)

    return await in_thread(run)
