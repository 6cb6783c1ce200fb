"""The upkeep of a running server: looks after the disks, repairs, scrubs."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np

from toast.common.waiting import wait_event
from vodserver.store.catalog import DiskRow
from vodserver.store.events import ReplicaBad, StoreEvent
from vodserver.store.store import Store
from vodserver.store.upkeep.blocks import BlocksKeeper
from vodserver.store.upkeep.disks import REPLACING_NOTE, steps_on
from vodserver.store.upkeep.health import Condition, DiskFacts, DiskHealth, slow_disks
from vodserver.store.upkeep.probe import look_at
from vodserver.store.upkeep.repair import Job, Repairs
from vodserver.store.upkeep.scrub import Scrub, last_scrub
from vodserver.store.upkeep.settings import UpkeepSettings
from vodserver.store.upkeep.threads import in_catalog, in_thread
from vodserver.store.upkeep.workshop import workshop_of

__all__ = ["Keeper"]

_PAUSE_SECONDS: Final = 60.0
"""Between looks at whether a scrub is due."""

_SAMPLE_READS: Final = 16
"""How long reads take is judged by so many of them: a single one may just have been unlucky."""

_log = logging.getLogger(__name__)


class Keeper:
    """Keeps a store whole in the background.

    It asks each disk how it is, lets go of one that vanished and takes it back when it returns;
    has bad replicas remade, and those of a disk that is gone too long; makes block hashes that are
    missing; and scrubs.

    Args:
        store: opened by this process, which runs the loop of `start`.
        settings: how.
        rng: chance for the choice of disks; fresh if not given.
    """

    def __init__(
        self, store: Store, settings: UpkeepSettings, *, rng: np.random.Generator | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._workshop = workshop_of(store)
        self._health: dict[int, DiskHealth] = {}
        self._wrote: dict[int, float] = {}
        self._asking: dict[int, asyncio.Task[DiskFacts]] = {}
        self._asked: dict[int, float] = {}
        self._given_up: set[int] = set()
        self._served: dict[int, tuple[int, float]] = {}
        self._took: dict[int, float] = {}
        self._suspects: asyncio.Queue[int] = asyncio.Queue()
        self._look = asyncio.Event()
        self._notes: list[tuple[str, int, int, str]] = []
        self._noted = asyncio.Event()
        self._filled: int | None = None
        self._blocks = BlocksKeeper(self._workshop, settings.scrub_rate)
        self._unsubscribe: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.repairs = Repairs(
            self._workshop,
            grace=settings.absent_grace_seconds,
            workers=settings.repair_workers,
            rng=np.random.default_rng() if rng is None else rng,
            doubt=self._doubt,
            preferred=lambda: self._filled,
        )

    async def start(self) -> None:
        """Begin, with what the catalog knows to be bad or missing."""
        self._unsubscribe = [self._store.subscribe(self._listen), self._blocks.start()]
        bad, note = await in_catalog(
            self._store, lambda catalog: (catalog.bad(), catalog.get_note(REPLACING_NOTE))
        )
        self._filled = int(note) if note and note.isdecimal() else None
        ids = {title.folder: title.id for title in self._store.titles()}
        for each in bad:
            if each.replica.folder in ids:
                replica = each.replica
                self.repairs.want(Job(ids[replica.folder], replica.number, replica.disk))
        for title in self._store.titles():
            for extent in title.extents:
                if len(extent.disks) < self._workshop.policy.copies:
                    self.repairs.want(Job(title.id, extent.number, None))
        work = [self._watch, self._write_notes, self.repairs.run, self._check_suspects]
        work.append(self._blocks.run)
        if self._settings.scrub:
            work.append(self._scrub)
        self._tasks = [
            asyncio.create_task(self._guarded(each), name=f"upkeep {each.__name__}")
            for each in work
        ]

    async def close(self) -> None:
        """Stop, and wait until what is under way is whole."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe = []
        tasks = [*self._tasks, *self._asking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks = []
        self._asking = {}

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception:  # noqa: BLE001 - nobody awaits it, and the server must go on
                _log.exception("upkeep failed in %s; it tries again", work)
            else:
                return
            await asyncio.sleep(self._settings.probe_interval_seconds)

    # What happens

    def _listen(self, event: StoreEvent) -> None:
        if isinstance(event, ReplicaBad):
            title, extent, disk = event.title, event.extent, event.disk
            self._notes.append((title.folder, extent.number, disk, event.fault))
            self._noted.set()
            self._look.set()  # perhaps it is the disk, not the replica
            self.repairs.want(
                Job(title.id, extent.number, disk), delay=self._settings.probe_interval_seconds / 5
            )

    async def _write_notes(self) -> None:
        """Keep what was found bad where it survives us."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            notes, self._notes = self._notes, []
            placed = [note for note in notes if self._is_placed(*note[:3])]
            if placed:
                await self._workshop.note_bad(placed)

    def _is_placed(self, folder: str, number: int, disk: int) -> bool:
        for title in self._store.titles():
            if title.folder == folder:
                return disk in title.extents[number].disks
        return False

    def _doubt(self, number: int) -> None:
        """A disk did not take what was written to it: see whether it takes anything."""
        self._wrote.pop(number, None)
        self._look.set()

    # The disks

    async def _watch(self) -> None:
        while True:
            rows = [row for row in self._store.disk_rows if row.state != "retired"]
            await asyncio.gather(*(self._ask(row) for row in rows))
            self._find_slow(rows)
            await self._give_up(rows)
            await wait_event(self._look, self._settings.probe_interval_seconds)

    async def _ask(self, row: DiskRow) -> None:
        """Ask one disk; one that hangs is asked no second time before it answers."""
        now = time.monotonic()
        number = row.number
        asking = self._asking.get(number)
        if asking is None:
            due = now - self._wrote.get(number, -1e9) >= self._settings.write_probe_interval_seconds
            store_id, path = self._store.catalog.store_id, self._workshop.where(row)
            if due:
                self._wrote[number] = now
            self._asked[number] = now
            asking = self._asking[number] = asyncio.ensure_future(
                in_thread(lambda: look_at(path, store_id, row.id, write=due), linger=0.0)
            )
        # A disk that answers does so at once: the others need not wait for one that does not.
        patience = min(1.0, self._settings.probe_timeout_seconds)
        await asyncio.wait({asking}, timeout=patience)
        if asking.done():
            del self._asking[number]
            self._judge(row, asking.result())
        elif time.monotonic() - self._asked[number] >= self._settings.probe_timeout_seconds:
            self._judge(row, DiskFacts(present=None, fault="it does not answer"))

    def _judge(self, row: DiskRow, facts: DiskFacts) -> None:
        current = next((each for each in self._store.disk_rows if each.number == row.number), None)
        if current is None or current.id != row.id:
            return  # it was replaced while it was asked
        number = row.number
        health = self._health.get(number)
        if health is None or number not in self._workshop.conditions:
            health = self._health[number] = DiskHealth(self._settings)
        before = self._workshop.conditions.get(number)
        statistics = self._store.statistics().disks.get(number)
        reads = (0, 0) if statistics is None else (statistics.disk_reads, statistics.failed_reads)
        condition = health.observe(facts, time.monotonic(), reads=reads)
        self._workshop.conditions[number] = condition
        self._act(row, before, condition)

    def _act(self, row: DiskRow, before: Condition | None, now: Condition) -> None:
        attached = row.number in self._store.disk_paths
        if now.health == "absent" and attached:
            self._store.detach_disk(row.number)
        elif now.health != "absent" and not attached:
            self._store.attach_disk(row, row.path)
            self._given_up.discard(row.number)
            # What it holds was out of our sight.
            self._suspects.put_nowait(row.number)
            self.repairs.hurry()
        was = "ok" if before is None else before.health
        if now.health != was:
            _log.warning(
                "disk %d (%s) is %s%s",
                *(row.number, row.path, now.health),
                f": {now.reason}" if now.reason else " again",
            )
            if now.can_take:
                self.repairs.hurry()

    def _find_slow(self, rows: list[DiskRow]) -> None:
        """Compare what the disks' reads took; only disks that are otherwise well."""
        conditions = self._workshop.conditions
        for number, each in self._store.statistics().disks.items():
            reads, seconds = self._served.setdefault(number, (0, 0.0))
            made = each.disk_reads - reads
            if made >= _SAMPLE_READS:
                self._took[number] = (each.service_seconds - seconds) / made
            if made < 0 or made >= _SAMPLE_READS:
                self._served[number] = each.disk_reads, each.service_seconds
        took = {number: self._took[number] for number in self._served if number in self._took}
        before = [number for number, each in conditions.items() if each.health == "slow"]
        slow = slow_disks(took, self._settings.slow_ratio, slow_before=before)
        for row in rows:
            health, old = self._health.get(row.number), conditions.get(row.number)
            if health is None or old is None:
                continue
            new = health.note_slow(row.number in slow, time.monotonic())
            conditions[row.number] = new
            self._act(row, old, new)

    async def _give_up(self, rows: list[DiskRow]) -> None:
        """Have the replicas of disks that are gone for too long made elsewhere."""
        now = time.monotonic()
        for row in rows:
            condition = self._workshop.conditions.get(row.number)
            late = (
                condition is not None
                and condition.health == "absent"
                and now - condition.since >= self._settings.absent_grace_seconds
            )
            if (late or row.state == "lost") and row.number not in self._given_up:
                self._given_up.add(row.number)
                steps = await steps_on(self._workshop, row.number)
                if steps:
                    _log.warning(
                        "disk %d is given up: %d replicas are made elsewhere",
                        *(row.number, len(steps)),
                    )
                for step in steps:
                    self.repairs.want(Job(step.title.id, step.extent.number, row.number))
                self.repairs.hurry()

    async def _check_suspects(self) -> None:
        """Read what is on a disk that came back, and remove what was moved off it meanwhile."""
        while True:
            number = await self._suspects.get()
            await self._workshop.sweep()
            for step in await steps_on(self._workshop, number):
                if number not in self._store.disk_paths:
                    break
                title = self._store.title(step.title.id)
                if title is not None and number in title.extents[step.extent.number].disks:
                    await self._store.check_replica(title, step.extent, number, from_disk=True)

    # Scrub

    async def _scrub(self) -> None:
        while True:
            # Not at once: a server that was just started has viewers to win back.
            await asyncio.sleep(_PAUSE_SECONDS)
            last = await in_catalog(self._store, lambda catalog: last_scrub(catalog.get_note))
            if last is None or time.time() - last.started >= self._settings.scrub_interval_seconds:
                scrub = Scrub(self._workshop, kind="background", rate=self._settings.scrub_rate)
                await scrub.run(lambda _: None)
