"""Blocking work in threads, cancelled and not."""

import asyncio
import threading

import pytest

from vodserver.store.catalog import CATALOG_NAME
from vodserver.store.upkeep.threads import in_catalog, in_thread, to_the_end


async def test_a_result_and_an_error_come_back():
    assert await in_thread(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_the_loop_goes_on_meanwhile():
    gate = threading.Event()
    task = asyncio.ensure_future(in_thread(lambda: gate.wait(10)))
    await asyncio.sleep(0)
    gate.set()
    assert await task is True


async def test_a_cancelled_caller_waits_for_the_end():
    begun, gate, done = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        gate.wait(10)
        done.append(True)

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]


async def test_but_not_for_ever():
    gate = threading.Event()
    task = asyncio.ensure_future(in_thread(lambda: gate.wait(10), linger=0.0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    gate.set()


async def test_steps_that_belong_together_are_taken_together():
    steps, begun = [], asyncio.Event()

    async def work():
        steps.append(1)
        begun.set()
        await asyncio.sleep(0)
        steps.append(2)

    task = asyncio.ensure_future(to_the_end(work()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == [1, 2]


async def test_the_catalog_is_used_beside_the_store_that_has_it_open(home):
    with home.open() as store:
        await in_catalog(store, lambda catalog: catalog.set_note("it", "here"))

        assert store.catalog.get_note("it") == "here"
        assert await in_catalog(store, lambda catalog: catalog.path) == home.path / CATALOG_NAME
