"""Schedulers that know their disks, for tests."""

from typing import Any, TypeVar

from vodserver.scheduling import ReadRequest, Scheduler

__all__ = ["SIZE", "teach"]

SIZE = 1_000_000

S = TypeVar("S", bound=Scheduler)


def teach(make: type[S], seconds: dict[int, float], **options: Any) -> S:
    """A scheduler that has seen each disk take so long for a read of SIZE, 30 times."""
    scheduler = make(disks=seconds, **options)
    for disk, duration in seconds.items():
        for number in range(30):
            scheduler.submit(ReadRequest(number, (disk,), SIZE), 0.0)
            scheduler.next(disk, 0.0)
            scheduler.finish(disk, duration)
    return scheduler
