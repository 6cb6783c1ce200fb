"""Scrub: every replica is read from its disk and compared with its checksums, at a chosen pace.

The files of block hashes are read, too, each after the replicas of its title.

How far it has come is noted in the catalog, so that one which was stopped goes on where it was.
"""

import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from toast.common.errors import ToastError
from vodserver.errors import StoreError
from vodserver.store.blocks import fault_of
from vodserver.store.catalog import Catalog, Extent, Title
from vodserver.store.events import ReplicaBad, StoreEvent
from vodserver.store.upkeep.blocks import make_blocks
from vodserver.store.upkeep.pace import Pace
from vodserver.store.upkeep.threads import in_catalog, in_thread, to_the_end
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["Scrub", "ScrubState", "last_scrub", "load_state"]

_NOTE_SECONDS: Final = 5.0
_LAST_NOTE: Final = "scrub last"


@dataclass(slots=True)
class ScrubState:
    """How far a scrub has come.

    Attributes:
        started: unix seconds.
        seconds: time that it took so far.
        folder: folder of the title that it is at; empty at the start.
        number: the next extent in it.
        checked: replicas read.
        checked_bytes: bytes of those.
        bad: replicas, and files of block hashes, found bad.
        repaired: those of them that are good again.
        unreachable: replicas on disks that were not there.
        finished: whether it is through.
    """

    started: float
    seconds: float = 0.0
    folder: str = ""
    number: int = 0
    checked: int = 0
    checked_bytes: int = 0
    bad: int = 0
    repaired: int = 0
    unreachable: int = 0
    finished: bool = False

    def to_note(self) -> str:
        """As the catalog keeps it."""
        return json.dumps(asdict(self))


def load_state(note: str | None) -> ScrubState | None:
    """What a note says; None if it says nothing that this version understands."""
    try:
        value = json.loads(note or "null")
        kinds = {field.name: field.type for field in fields(ScrubState)}
        if not isinstance(value, dict) or set(value) != set(kinds):
            return None
        return ScrubState(**value)
    except (ValueError, TypeError):
        return None


class Scrub:
    """One scrub of a store, from where it was stopped or from the start.

    Args:
        workshop: of the store.
        kind: its note in the catalog: scrubs of different kinds go on independently.
        rate: bytes per second to read at most; None: as fast as the disks let it.
        repair: makes a bad replica good, and returns whether it did; None: leave them to others.
    """

    def __init__(
        self,
        workshop: Workshop,
        *,
        kind: str,
        rate: float | None,
        repair: Callable[[Title, Extent, int], Awaitable[bool]] | None = None,
    ) -> None:
        self._workshop = workshop
        self._kind = kind
        self._key = f"scrub {kind}"
        self._rate = rate
        self._repair = repair
        self._faults: dict[int, str] = {}
        self._began = 0.0
        self._noted = 0.0
        self._pace = Pace(rate)
        self._total = 0
        self.state = ScrubState(0.0)

    async def run(
        self, progress: Callable[[dict[str, Any]], None], *, anew: bool = False
    ) -> ScrubState:
        """Scrub, to the end.

        Args:
            progress: told after every extent.
            anew: from the start, wherever an earlier one was stopped.

        Returns:
            What it found.

        Raises:
            StoreError: one of its kind is under way.
        """
        if self._kind in self._workshop.scrubs:
            raise StoreError("a scrub is under way: 'vodserver status' shows how far it is")
        self._workshop.scrubs.add(self._kind)
        try:
            return await self._run(progress, anew=anew)
        finally:
            self._workshop.scrubs.discard(self._kind)

    async def _run(self, progress: Callable[[dict[str, Any]], None], *, anew: bool) -> ScrubState:
        store = self._workshop.store
        note = await in_catalog(store, lambda catalog: catalog.get_note(self._key))
        found = None if anew else load_state(note)
        self.state = found if found and not found.finished else ScrubState(time.time())
        before = self.state.seconds
        self._pace = Pace(self._rate)
        self._began = self._noted = time.monotonic()
        self._total = sum(len(e.disks) * e.size for t in store.titles() for e in t.extents)
        unsubscribe = store.subscribe(self._listen)
        try:
            # By folder: those are in an order that titles which come and go do not change.
            while (title := self._next_title()) is not None:
                if title.folder != self.state.folder:
                    self.state.folder, self.state.number = title.folder, 0
                await self._scrub_title(title, before, progress)
                self.state.number = len(title.extents)
            self.state.finished = True
        finally:
            unsubscribe()
            self.state.seconds = before + time.monotonic() - self._began
            self._workshop.scrubbing = None
            await to_the_end(self._note())
        return self.state

    def _next_title(self) -> Title | None:
        state = self.state
        titles = sorted(self._workshop.store.titles(), key=lambda title: title.folder)
        for title in titles:
            if title.folder > state.folder:
                return title
            if title.folder == state.folder and state.number < len(title.extents):
                return title
        return None

    async def _scrub_title(
        self, title: Title, before: float, progress: Callable[[dict[str, Any]], None]
    ) -> None:
        for number in range(self.state.number, len(title.extents)):
            current = self._workshop.store.title(title.id)
            if current is None or current.folder != title.folder:
                return  # it was removed meanwhile
            extent = current.extents[number]
            for disk in extent.disks:
                await self._check(current, extent, disk)
            self.state.number = number + 1
            now = time.monotonic()
            self.state.seconds = before + now - self._began
            self._tell(progress)
            if now - self._noted >= _NOTE_SECONDS:
                self._noted = now
                await self._note()
        await self._check_blocks(title)

    async def _check_blocks(self, title: Title) -> None:
        store = self._workshop.store
        if not title.block_roots:
            return
        fault = await in_thread(lambda: fault_of(store.path, title, deep=True))
        current = store.title(title.id)
        if fault is None or current is None or current.folder != title.folder:
            return
        self.state.bad += 1
        store.doubt_blocks(title.id)
        if self._repair is not None:
            with suppress(ToastError, OSError):  # the result counts it
                self.state.repaired += await make_blocks(self._workshop, title.id)

    async def _check(self, title: Title, extent: Extent, disk: int) -> None:
        store = self._workshop.store
        if disk not in store.disk_paths:
            self.state.unreachable += 1
            return
        await self._pace.wait(extent.size)
        self._faults.clear()
        good = await store.check_replica(title, extent, disk, from_disk=True)
        if disk not in store.disk_paths:
            self.state.unreachable += 1
            return
        self.state.checked += 1
        self.state.checked_bytes += extent.size
        if good:
            return
        self.state.bad += 1
        fault = self._faults.pop(disk, "it is not what was written")
        await self._workshop.note_bad([(title.folder, extent.number, disk, fault)])
        if self._repair is not None:
            self.state.repaired += await self._repair(title, extent, disk)

    def _listen(self, event: StoreEvent) -> None:
        if isinstance(event, ReplicaBad):
            self._faults[event.disk] = event.fault

    def _tell(self, progress: Callable[[dict[str, Any]], None]) -> None:
        state = self.state
        told = {
            "checked": state.checked,
            "bad": state.bad,
            "repaired": state.repaired,
            "bytes_done": state.checked_bytes,
            "bytes_total": max(self._total, state.checked_bytes),
        }
        self._workshop.scrubbing = dict(told)
        progress(told)

    async def _note(self) -> None:
        text = self.state.to_note()

        def note(catalog: Catalog) -> None:
            catalog.set_note(self._key, text)
            if self.state.finished:
                catalog.set_note(_LAST_NOTE, text)

        await in_catalog(self._workshop.store, note)


def last_scrub(note: Callable[[str], str | None]) -> ScrubState | None:
    """The scrub that was finished last, of any kind, from the catalog's notes."""
    return load_state(note(_LAST_NOTE))
