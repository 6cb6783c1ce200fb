import asyncio

from tracker.ending import end_tasks


async def test_whoever_loses_a_cancellation_is_cancelled_again():
    lost = []

    async def stubborn():
        while len(lost) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost.append(1)
        await asyncio.Event().wait()

    async def broken():
        raise LookupError("gone")

    tasks = [asyncio.create_task(work()) for work in (stubborn, broken)]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await end_tasks(tasks)
    assert all(task.done() for task in tasks)
    assert len(lost) == 2


async def test_without_tasks_there_is_nothing_to_do():
    await end_tasks(())
