"""Repair: what is bad, missing or short of replicas is made again, where there is room for it.

`decide` says what to do about one replica; `Repairs` does it, a few at a time, and again later
where it cannot be done yet.
"""

import asyncio
import contextlib
import heapq
import itertools
import logging
import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import numpy as np

from toast.common.errors import ToastError
from vodserver.errors import DiskError, TargetError
from vodserver.store.catalog import Extent, Title
from vodserver.store.upkeep.health import Condition
from vodserver.store.upkeep.targets import choose_target
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["Decision", "Job", "Repairs", "decide", "mend"]

_FIRST_RETRY_SECONDS: Final = 5.0
_LAST_RETRY_SECONDS: Final = 600.0
_SOON_SECONDS: Final = 0.1

_log = logging.getLogger(__name__)

Decision = Literal["here", "elsewhere", "wait"]


class Job(NamedTuple):
    """A replica to be made good.

    Attributes:
        title_id: whose.
        number: of its extent.
        disk: where it is bad; None if the extent has too few replicas.
    """

    title_id: str
    number: int
    disk: int | None


def decide(condition: Condition | None, *, attached: bool, state: str, absent: float) -> Decision:
    """What to do about a bad replica on a disk.

    Args:
        condition: what the disk is like; None if nobody has looked yet.
        attached: whether the store reads from it.
        state: what it is to the store, as the catalog has it.
        absent: how long it may yet be gone before it is given up, seconds; <= 0: no longer.
    """
    if state in {"lost", "retired"}:
        return "elsewhere"
    if not attached or (condition is not None and condition.health == "absent"):
        return "wait" if absent > 0 else "elsewhere"
    if state == "draining":
        return "elsewhere"
    return "here" if condition is None or condition.can_take else "elsewhere"


async def mend(
    workshop: Workshop,
    title: Title,
    extent: Extent,
    disk: int,
    *,
    rng: np.random.Generator,
    grace: float,
    check: bool = True,
) -> float:
    """Make a replica good: where it is, or elsewhere if that disk cannot take it.

    Args:
        workshop: of the store.
        title: whose.
        extent: which extent.
        disk: where it is bad.
        rng: chance for the choice of another disk.
        grace: seconds for which a disk may be gone before its replicas are made elsewhere.
        check: see first whether it is not good after all.

    Returns:
        0 if it is good, or no more; else the seconds after which its disk is given up.

    Raises:
        ReadError: no other replica is good.
        TargetError: the disk that it was written to did not take it.
        AllocationError: no disk can take it.
    """
    if disk not in extent.disks:
        return 0.0
    condition = workshop.conditions.get(disk)
    attached = disk in workshop.store.disk_paths
    absent = 0.0
    if condition is not None and condition.health == "absent":
        absent = condition.since + grace - time.monotonic()
    elif not attached:
        absent = grace
    state = workshop.row(disk).state
    decision = decide(condition, attached=attached, state=state, absent=absent)
    if decision == "wait":
        return max(absent, _SOON_SECONDS)
    if (
        check
        and attached
        and await workshop.store.check_replica(title, extent, disk, from_disk=True)
    ):
        await workshop.trust(title, extent, disk)  # it was the disk that did not answer
        return 0.0
    target = disk
    if decision == "elsewhere":
        await workshop.count()
        target = choose_target(workshop, extent, rng, avoid=disk)
    await _write(workshop, title, extent, disk, target)
    return 0.0


async def _write(
    workshop: Workshop, title: Title, extent: Extent, disk: int | None, target: int
) -> None:
    try:
        if disk is None:
            await workshop.add(title.id, extent.number, target)
        else:
            await workshop.move(title.id, extent.number, disk, target)
    except DiskError as error:
        raise TargetError(target, str(error)) from error


class Repairs:
    """The queue of a running server.

    Args:
        workshop: does the work.
        grace: seconds for which a disk may be gone before its replicas are made elsewhere.
        workers: jobs at a time.
        rng: chance for the choice of disks.
        doubt: called with a disk's number when it did not take what was written.
        preferred: a disk that is being filled, which new replicas go to if they can.
    """

    def __init__(
        self,
        workshop: Workshop,
        *,
        grace: float,
        workers: int,
        rng: np.random.Generator,
        doubt: Callable[[int], None],
        preferred: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._workshop = workshop
        self._grace = grace
        self._workers = workers
        self._rng = rng
        self._doubt = doubt
        self._preferred = preferred
        self._due: list[tuple[float, int, Job]] = []
        self._tries: dict[Job, int] = {}
        self._again: dict[Job, float | None] = {}
        """By job that is being done: how long to wait before it is done once more, if it is."""
        self._hurries = 0
        self._order = itertools.count()
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Jobs that are not done."""
        return len(self._tries)

    def want(self, job: Job, *, delay: float = 0.0) -> None:
        """Have a job done; nothing if it waits already.

        One that is being done just now is done once more: what it made may be bad again.
        """
        if job in self._again:
            self._again[job] = delay
        elif job not in self._tries:
            self._tries[job] = 0
            self._push(job, delay)

    def hurry(self) -> None:
        """Something changed for the better: try again what had to wait."""
        self._hurries += 1
        self._due = [(0.0, order, job) for _, order, job in self._due]
        heapq.heapify(self._due)
        self._changed.set()

    async def run(self) -> None:
        """Do the jobs, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    def _push(self, job: Job, delay: float) -> None:
        heapq.heappush(self._due, (time.monotonic() + delay, next(self._order), job))
        self._changed.set()

    async def _work(self) -> None:
        while True:
            job = await self._next()
            self._again[job] = None
            hurries = self._hurries
            try:
                delay = await self._try(job)
            except BaseException:
                self._push(job, 0.0)  # whoever runs us next finds it
                raise
            finally:
                again = self._again.pop(job)
            if delay is None and again is not None:
                self._tries[job] = 0
                self._push(job, again)
            elif delay is None:
                self._tries.pop(job, None)
            else:
                self._push(job, delay if hurries == self._hurries else 0.0)

    async def _next(self) -> Job:
        while True:
            self._changed.clear()
            now = time.monotonic()
            if self._due and self._due[0][0] <= now:
                self._changed.set()  # there may be one for another worker too
                return heapq.heappop(self._due)[2]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._due[0][0] - now if self._due else None):
                    await self._changed.wait()

    async def _try(self, job: Job) -> float | None:
        """Do a job; how long to wait before it is tried again, None if it is done with."""
        title = self._workshop.store.title(job.title_id)
        if title is None or job.number >= len(title.extents):
            return None  # it was removed, and perhaps another has its id
        extent = title.extents[job.number]
        try:
            if job.disk is None:
                await self._complete(title, extent)
                return None
            wait = await mend(
                self._workshop, title, extent, job.disk, rng=self._rng, grace=self._grace
            )
        except TargetError as error:
            self._doubt(error.disk)
            return self._retry(job, error)
        except (ToastError, OSError) as error:
            return self._retry(job, error)
        except Exception as error:  # noqa: BLE001 - else no job would be done any more
            _log.exception("the repair of extent %d of '%s' failed", job.number, job.title_id)
            return self._retry(job, error)
        return None if wait <= 0 else wait

    def _retry(self, job: Job, error: Exception) -> float:
        tries = self._tries[job] = self._tries.get(job, 0) + 1
        if tries == 1:
            _log.warning("cannot repair extent %d of '%s' yet: %s", job.number, job.title_id, error)
        return min(_FIRST_RETRY_SECONDS * 2.0 ** (min(tries, 20) - 1), _LAST_RETRY_SECONDS)

    async def _complete(self, title: Title, extent: Extent) -> None:
        """Add replicas until there are as many as the placement makes."""
        workshop = self._workshop
        while len(extent.disks) < workshop.policy.copies:
            await workshop.count()
            target = choose_target(workshop, extent, self._rng, preferred=self._preferred())
            await _write(workshop, title, extent, None, target)
            now = workshop.store.title(title.id)
            if now is None or now.folder != title.folder:
                return  # it was removed meanwhile
            title, extent = now, now.extents[extent.number]
