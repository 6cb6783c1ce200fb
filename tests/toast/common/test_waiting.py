"""Waiting without losing a cancellation, and without taking the place of who is waited for."""

import asyncio
import threading

import pytest

from toast.common.waiting import run_apart, wait_event


async def test_an_event_that_is_set_is_told_and_cleared():
    event = asyncio.Event()
    event.set()
    assert await wait_event(event, 1.0) is True
    assert not event.is_set()


async def test_the_limit_ends_the_wait():
    assert await wait_event(asyncio.Event(), 0.0) is False


async def test_work_apart_may_wait_for_the_pool_of_all_others():
    """More of it than the pool has threads: in `asyncio.to_thread` they would wait for ever."""
    loop = asyncio.get_running_loop()

    def work(number):
        future = asyncio.run_coroutine_threadsafe(asyncio.to_thread(lambda: number * 2), loop)
        return future.result()

    async with asyncio.timeout(20):
        assert await asyncio.gather(*(run_apart(work, n) for n in range(50))) == list(
            range(0, 100, 2)
        )


async def test_an_error_of_the_work_is_the_callers():
    def work():
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await run_apart(work)


async def test_whoever_is_cancelled_waits_until_the_work_has_ended():
    started, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work():
        started.set()
        may_end.wait(20)
        ended.set()
        raise LookupError("nobody looks any more")

    waiting = asyncio.create_task(run_apart(work))
    await asyncio.to_thread(started.wait, 20)
    waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
