"""Remakes and moves replicas of one store: the only place where an extent gets another disk.

Whatever is written is noted in the catalog before (`pending`), appears under its name whole, and
is placed by one transaction after; what it replaces is garbage from that transaction on. So a kill
at any moment leaves every placed replica as it was, and nothing that the next opening of the store
does not clear away.
"""

import asyncio
import dataclasses
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary, ref

from vodserver.allocation import ALLOCATIONS, Allocation
from vodserver.errors import DiskError, StoreError, StoreUsageError
from vodserver.store.catalog import Catalog, DiskRow, Extent, Replica, Title
from vodserver.store.events import ReplicaBad, StoreEvent
from vodserver.store.removal import clear_garbage, clear_pending
from vodserver.store.replicas import write_replica
from vodserver.store.store import Store
from vodserver.store.upkeep.health import Condition, DiskHealth
from vodserver.store.upkeep.probe import look_at
from vodserver.store.upkeep.settings import UpkeepSettings
from vodserver.store.upkeep.threads import in_catalog, in_thread, to_the_end

__all__ = ["Workshop", "count_used", "workshop_of"]

_READ_BYTES: Final = 4 * 1024 * 1024
"""Read at a time for a copy: what a viewer may have to wait for."""


class Workshop:
    """What upkeep of one store shares: locks, the disks' conditions, counts.

    Attributes:
        conditions: what each disk was found to be like, by number.
        remade: replicas remade since the store was opened.
        scrubs: kinds of those under way.
        scrubbing: what a scrub under way tells of itself; None without one.
        policy: the store's placement policy.
        making_blocks: held while block hashes are made.
    """

    def __init__(self, store: Store) -> None:
        self._store = ref(store)
        self.conditions: dict[int, Condition] = {}
        self.remade = 0
        self.scrubbing: dict[str, object] | None = None
        self.scrubs: set[str] = set()
        self.policy: Allocation = ALLOCATIONS.create(store.catalog.allocation)
        self.making_blocks = asyncio.Lock()
        self._locks: dict[tuple[str, int], asyncio.Lock] = {}
        self._users: Counter[tuple[str, int]] = Counter()
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._sweeping = asyncio.Lock()
        self._used: dict[int, int] | None = None
        self._including = False
        self._changes = 0
        store.subscribe(self._forget_used)

    @property
    def store(self) -> Store:
        """The store; it outlives whoever works on it."""
        store = self._store()
        assert store is not None, "somebody works on a store that is gone"
        return store

    # Disks

    def used(self) -> dict[int, int]:
        """Bytes of the extents placed on each disk, by its number."""
        if self._used is None:
            self._used = count_used(self.store.disk_rows, self.store.titles())
        return self._used

    async def count(self) -> None:
        """Have `used` ready, counted in a thread: a large store has millions of replicas."""
        while self._used is None:
            changes = self._changes
            rows, titles = list(self.store.disk_rows), self.store.titles()
            used = await in_thread(partial(count_used, rows, titles))
            if changes == self._changes:
                self._used = used

    def _forget_used(self, event: StoreEvent) -> None:
        if not isinstance(event, ReplicaBad) and not self._including:
            self._used = None
        self._changes += 1

    def row(self, number: int) -> DiskRow:
        """A disk of the store.

        Raises:
            StoreUsageError: there is none of this number.
        """
        for row in self.store.disk_rows:
            if row.number == number:
                return row
        known = ", ".join(str(row.number) for row in self.store.disk_rows)
        raise StoreUsageError(f"the store has no disk {number}: its disks are {known}")

    def where(self, row: DiskRow) -> Path:
        """The directory of a disk: where it was found, or else where it was last."""
        return self.store.disk_paths.get(row.number, row.path)

    def can_take(self, row: DiskRow) -> bool:
        """Whether replicas may be written to a disk now."""
        condition = self.conditions.get(row.number)
        return (
            row.state == "active"
            and row.number in self.store.disk_paths
            and (condition is None or condition.can_take)
        )

    async def look(self, *, write: bool) -> None:
        """Learn what the disks are like, once; for a process that does not watch them."""
        store_id = self.store.catalog.store_id

        async def one(row: DiskRow) -> None:
            health = DiskHealth(UpkeepSettings())
            try:
                async with asyncio.timeout(health.settings.probe_timeout_seconds):
                    path = self.where(row)
                    facts = await in_thread(
                        lambda: look_at(path, store_id, row.id, write=write), linger=0.0
                    )
            except TimeoutError:
                return
            self.conditions[row.number] = health.observe(facts, time.monotonic())

        rows = [row for row in self.store.disk_rows if row.state != "retired"]
        await asyncio.gather(*(one(row) for row in rows))

    # Replicas

    async def remake(self, title_id: str, number: int, disk: int) -> bool:
        """Write the replica on a disk anew, from another, where it is placed already.

        Returns:
            Whether that was to be done; not so if it is placed there no more.

        Raises:
            ReadError: no other replica is good.
            DiskError: the disk does not take it.
        """
        return await self._copy(title_id, number, target=disk, instead_of=disk)

    async def move(self, title_id: str, number: int, source: int, target: int) -> bool:
        """Give an extent a replica on `target` in place of the one on `source`.

        Returns, raises: as `remake`.
        """
        return await self._copy(title_id, number, target=target, instead_of=source)

    async def add(self, title_id: str, number: int, target: int) -> bool:
        """Give an extent one more replica.

        Returns, raises: as `remake`.
        """
        return await self._copy(title_id, number, target=target, instead_of=None)

    async def _copy(
        self, title_id: str, number: int, *, target: int, instead_of: int | None
    ) -> bool:
        title = self.store.title(title_id)
        if title is None:
            return False
        async with self._lock(title.folder, number):
            title = self.store.title(title_id)
            if title is None:
                return False
            extent = title.extents[number]
            in_place = target == instead_of
            if instead_of is not None and instead_of not in extent.disks:
                return False
            if not in_place and target in extent.disks:
                return False
            disks = [disk for disk in extent.disks if disk not in {instead_of, target}]
            at = len(disks) if instead_of is None else extent.disks.index(instead_of)
            disks.insert(at, target)
            data = await self._read(title, extent)
            async with self._write_turn():
                await self._write(title, extent, data, target, disks)
            self.remade += 1
            return True

    async def _read(self, title: Title, extent: Extent) -> bytes:
        """The whole extent, verified, taken in parts so that viewers come in between."""
        parts = [
            bytes(
                await self.store.read_extent(
                    title, extent, begin, min(begin + _READ_BYTES, extent.size), background=True
                )
            )
            for begin in range(0, extent.size, _READ_BYTES)
        ]
        return parts[0] if len(parts) == 1 else await in_thread(lambda: b"".join(parts))

    async def _write(
        self, title: Title, extent: Extent, data: bytes, target: int, disks: Sequence[int]
    ) -> None:
        path = self.store.disk_paths.get(target)
        if path is None:
            raise DiskError(f"disk {target} is not there: mount it")
        where = (title.folder, extent.number, target)
        ended = True

        def write() -> None:
            nonlocal ended
            ended = False
            try:
                write_replica(path, *where[:2], data, extent.sums, replace=True)
            finally:
                ended = True

        def undo(catalog: Catalog) -> None:
            clear_pending(catalog, {target: path}, Replica(*where))

        try:
            await in_catalog(self.store, lambda catalog: catalog.begin_write(*where))
            await in_thread(write)
            await to_the_end(self._place(title, extent, target, disks))
        except BaseException:
            # A disk that hangs may yet finish: then the next opening of the store clears it away.
            if ended:
                with suppress(StoreError):
                    await to_the_end(in_catalog(self.store, undo))
            raise

    async def _place(self, title: Title, extent: Extent, target: int, disks: Sequence[int]) -> None:
        """Commit what was written, and tell the store; these two belong together."""
        # Good from now on, and then struck from the catalog: see `note_bad`.
        self.store.mark_good(title, extent, target)
        await in_catalog(
            self.store,
            lambda catalog: catalog.commit_replica(
                title.id, extent.number, disks, folder=title.folder, disk=target
            ),
        )
        self.include(title.id, {extent.number: disks})

    def include(self, title_id: str, placed: dict[int, Sequence[int]]) -> None:
        """Tell the store of what was just committed: disk numbers by extent number."""
        title = self.store.title(title_id)
        if title is None:
            return
        changed = {
            number: dataclasses.replace(title.extents[number], disks=tuple(disks))
            for number, disks in placed.items()
            if title.extents[number].disks != tuple(disks)
        }
        if not changed:
            return
        used = self.used()
        for extent in changed.values():
            for disk in title.extents[extent.number].disks:
                used[disk] -= extent.size
            for disk in extent.disks:
                used[disk] = used.get(disk, 0) + extent.size
        extents = tuple(changed.get(extent.number, extent) for extent in title.extents)
        self._including = True
        try:
            self.store.include(dataclasses.replace(title, extents=extents))
        finally:
            self._including = False

    def include_blocks(self, title: Title, roots: bytes, sums: bytes) -> None:
        """Tell the store of a title's block hashes, which were just committed."""
        current = self.store.title(title.id)
        if current is not None and current.folder == title.folder:
            self.store.include(dataclasses.replace(current, block_roots=roots, block_sums=sums))

    async def sweep(self) -> None:
        """Remove the files of replicas that were moved away."""
        async with self._sweeping:
            # A file that is garbage while its extent is being moved back would be removed after
            # it was written and before it is placed.
            await self._idle.wait()
            paths = dict(self.store.disk_paths)
            await in_catalog(self.store, lambda catalog: clear_garbage(catalog, paths))

    async def note_bad(self, replicas: Iterable[tuple[str, int, int, str]]) -> None:
        """Note what is wrong with some replicas: folder, extent number, disk, fault."""
        found, noted = time.time(), tuple(replicas)

        def note(catalog: Catalog) -> None:
            for folder, number, disk, fault in noted:
                catalog.note_bad(folder, number, disk, fault, found)

        await in_catalog(self.store, note)
        bad = self.store.bad_replicas()
        remade = [replica[:3] for replica in noted if replica[:3] not in bad]

        def strike(catalog: Catalog) -> None:
            for replica in remade:
                catalog.forget_bad(*replica)

        if remade:  # quicker than we were: whoever remade one struck a note that was not there yet
            await in_catalog(self.store, strike)

    async def trust(self, title: Title, extent: Extent, disk: int) -> None:
        """A replica that was noted as bad is good."""
        self.store.mark_good(title, extent, disk)
        await in_catalog(
            self.store, lambda catalog: catalog.forget_bad(title.folder, extent.number, disk)
        )

    @asynccontextmanager
    async def _lock(self, folder: str, number: int) -> AsyncIterator[None]:
        """One at a time for each extent."""
        key = folder, number
        self._users[key] += 1
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._locks[key]

    @asynccontextmanager
    async def _write_turn(self) -> AsyncIterator[None]:
        """Many write at a time, but none while garbage is removed."""
        async with self._sweeping:
            self._writing += 1
            self._idle.clear()
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()


def count_used(rows: Iterable[DiskRow], titles: Iterable[Title]) -> dict[int, int]:
    """Bytes of the extents placed on each disk, by its number."""
    used = {row.number: 0 for row in rows}
    for title in titles:
        for extent in title.extents:
            for disk in extent.disks:
                used[disk] = used.get(disk, 0) + extent.size
    return used


_WORKSHOPS: Final[WeakKeyDictionary[Store, Workshop]] = WeakKeyDictionary()


def workshop_of(store: Store) -> Workshop:
    """The workshop of a store: one for all that keep it whole in this process."""
    if store not in _WORKSHOPS:
        _WORKSHOPS[store] = Workshop(store)
    return _WORKSHOPS[store]
