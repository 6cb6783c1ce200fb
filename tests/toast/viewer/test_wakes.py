"""Wakes: what is urgent is looked at now, what was on its way when it suits."""

import asyncio

from toast.viewer.wakes import Wakes


async def turns_until_done(task):
    """How many turns of the loop a task takes that waits for no clock; None if it does."""
    for turn in range(10):
        if task.done():
            return turn
        await asyncio.sleep(0)
    return None


async def test_news_end_the_wait_when_there_is_nothing_better_to_do():
    wakes = Wakes()
    waiting = asyncio.create_task(wakes.wait(60.0, is_hurrying=False))
    await asyncio.sleep(0)
    wakes.soon()
    assert await turns_until_done(waiting) is not None


async def test_in_a_hurry_news_wait_until_something_is_urgent():
    wakes = Wakes()
    waiting = asyncio.create_task(wakes.wait(60.0, is_hurrying=True))
    wakes.soon()
    assert await turns_until_done(waiting) is None
    wakes.soon()
    assert await turns_until_done(waiting) is None
    wakes.now()
    assert await turns_until_done(waiting) is not None


async def test_in_a_hurry_news_do_not_wait_for_ever():
    wakes = Wakes()
    wakes.soon()
    async with asyncio.timeout(20):
        await wakes.wait(60.0, is_hurrying=True)


async def test_what_happened_before_the_wait_ends_it_once():
    wakes = Wakes()
    wakes.now()
    await wakes.wait(60.0, is_hurrying=True)
    waiting = asyncio.create_task(wakes.wait(60.0, is_hurrying=True))
    assert await turns_until_done(waiting) is None
    waiting.cancel()


async def test_the_limit_ends_the_wait():
    async with asyncio.timeout(20):
        await Wakes().wait(0.0, is_hurrying=True)
