"""Many replicas moved, a few at a time, with progress, and whole whenever it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from toast.common.errors import ToastError
from vodserver.store.catalog import Extent, Title

__all__ = ["Step", "Tally", "run_steps"]

_AT_A_TIME: Final = 3
"""Reads, writes and commits of different replicas overlap; more would only take memory."""

_MOST_FAULTS: Final = 5


class Step(NamedTuple):
    """One replica to be dealt with.

    Attributes:
        title: whose.
        extent: of which extent.
        disk: the disk that it is about.
        target: the disk that it shall go to, where that is decided already.
    """

    title: Title
    extent: Extent
    disk: int
    target: int = -1


@dataclass(slots=True)
class Tally:
    """What became of the steps.

    Attributes:
        done: replicas written.
        done_bytes: bytes of those.
        failed: steps that could not be done.
        faults: why, of the first few.
    """

    done: int
    done_bytes: int
    failed: int
    faults: list[str]


async def run_steps(
    steps: Sequence[Step],
    work: Callable[[Step], Awaitable[bool]],
    progress: Callable[[dict[str, Any]], None],
) -> Tally:
    """Do the steps; one that fails does not stop the others.

    Args:
        steps: what to do.
        work: does one step; whether a replica was written.
        progress: told after each.

    Returns:
        What became of them.
    """
    tally = Tally(0, 0, 0, [])
    total = sum(step.extent.size for step in steps)
    passed = passed_bytes = 0
    queue: Iterator[Step] = iter(steps)

    async def worker() -> None:
        nonlocal passed, passed_bytes
        for step in queue:
            try:
                written = await work(step)
                tally.done += written
                tally.done_bytes += step.extent.size * written
            except (ToastError, OSError) as error:
                tally.failed += 1
                if len(tally.faults) < _MOST_FAULTS:
                    tally.faults.append(str(error))
            passed += 1
            passed_bytes += step.extent.size
            progress(
                {
                    "done": passed,
                    "total": len(steps),
                    "bytes_done": passed_bytes,
                    "bytes_total": total,
                }
            )

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_AT_A_TIME, len(steps))):
            group.create_task(worker())
    return tally
