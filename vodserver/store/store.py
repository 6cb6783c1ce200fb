"""A store, opened: its titles, and verified reads of them from whichever replica is best."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from vodserver.errors import DiskError, ReadError
from vodserver.scheduling import SCHEDULERS, DiskLoad
from vodserver.store.array import DiskArray
from vodserver.store.blocks import read_blocks
from vodserver.store.catalog import CATALOG_NAME, Catalog, DiskRow, Extent, Title
from vodserver.store.disks import Disk, ExtentKey, RealDisk
from vodserver.store.dispatched import Dispatched
from vodserver.store.events import (
    BlocksBad,
    DiskChanged,
    ReplicaBad,
    StoreEvent,
    TitleAdded,
    TitleChanged,
    TitleRemoved,
)
from vodserver.store.layout import StoreLock, extent_path, find_disks
from vodserver.store.memory import Memory
from vodserver.store.reading import ArraySettings, DiskStatistics, Wanted
from vodserver.store.removal import clear_debris
from vodserver.store.resident import Ready, Resident, part_of
from vodserver.store.sums import SUM_SPAN

__all__ = ["MAX_READ_BYTES", "Ready", "Store", "StoreStatistics", "list_titles", "open_store"]

MAX_READ_BYTES: Final = 4 * 1024 * 1024
"""The most that one `Store.read` may ask for: whoever wants more reads on when it has been sent."""

_CHECK_BYTES: Final = 16 * SUM_SPAN
_MOST_TRIES: Final = 3

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What the store's disks did since it was opened.

    Attributes:
        disks: by disk number; a disk that is not there has no entry.
        bad_replicas: replicas that were found missing, short, unreadable or rotten.
    """

    disks: Mapping[int, DiskStatistics]
    bad_replicas: int


class Store:
    """The films of one store. Made by `open_store`.

    Attributes:
        path: its directory.
        catalog: its catalog.
        disk_rows: every disk that it has.
        disk_paths: where each disk is that is there, by number.
        dispatched: counts of the reads that its disks were given.
    """

    def __init__(
        self,
        path: Path,
        catalog: Catalog,
        lock: StoreLock,
        *,
        disk_paths: Mapping[int, Path],
        make_disk: Callable[[Path], Disk],
        scheduler: str,
        reading: ArraySettings,
    ) -> None:
        self.path = path
        self.catalog = catalog
        self.disk_rows: list[DiskRow] = catalog.disks()
        self.disk_paths: dict[int, Path] = dict(disk_paths)
        self._lock = lock
        self._make_disk = make_disk
        self._titles = {title.id: title for title in catalog.titles()}
        self._ids = {title.folder: title.id for title in self._titles.values()}
        self._listeners: list[Callable[[StoreEvent], None]] = []
        policy = SCHEDULERS.create(scheduler, disks=tuple(self.disk_paths))
        self.dispatched = Dispatched()
        self._memory = Memory(self.dispatched)
        self._resident = Resident(
            self._memory,
            disk=lambda number: self._array.disk(number),  # noqa: PLW0108 - it is made below
            fault=self._note_bad,
        )
        self._sources = self._resident.sources
        self._bad = self._resident.bad
        self._bad.update(
            (bad.replica.folder, bad.replica.number, bad.replica.disk) for bad in catalog.bad()
        )
        self._array = DiskArray(
            {number: make_disk(disk) for number, disk in self.disk_paths.items()},
            policy,
            reading,
            begin=self.dispatched.note,
            learn=self._resident.learn,
            fault=self._note_bad,
        )
        self.note_resident = self._array.note_resident

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the disks and let other processes have the store."""
        self._array.close()
        self._memory.clear()
        self.dispatched.close()
        self.catalog.close()
        self._lock.close()

    # --- titles

    def titles(self) -> list[Title]:
        """Every title, in the order in which they were added."""
        return list(self._titles.values())

    def title(self, title_id: str) -> Title | None:
        """The title of this id, if there is one."""
        return self._titles.get(title_id)

    def include(self, title: Title) -> None:
        """Take notice of a title that was just committed to the catalog, or changed there."""
        known = self._titles.get(title.id)
        if known is not None:
            self._resident.forget_title(known, title)
        self._titles[title.id] = title
        self._ids[title.folder] = title.id
        self._tell(TitleAdded(title) if known is None else TitleChanged(title))

    def exclude(self, title_id: str) -> None:
        """Take notice of a title that was just removed from the catalog."""
        title = self._titles.pop(title_id, None)
        if title is not None:
            self._ids.pop(title.folder, None)
            self._resident.forget_title(title)
            self._tell(TitleRemoved(title))

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Have a function called with every event from now on.

        Args:
            listener: called where the event happens, so it must be quick and must not raise.

        Returns:
            Ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # --- disks and replicas

    def statistics(self) -> StoreStatistics:
        """What the disks did."""
        return StoreStatistics(self._array.statistics(), len(self._bad))

    def load(self, number: int) -> DiskLoad | None:
        """What a disk has to do; None if it is not there or does not answer."""
        return self._array.load(number)

    def is_paged(self, number: int) -> bool:
        """Whether what is read from a disk is in the kernel's page cache then."""
        disk = self._array.disk(number)
        return disk is not None and disk.paged

    def attach_disk(self, row: DiskRow, path: Path) -> None:
        """Begin to use a disk that was added to the catalog, or that is there again."""
        self.disk_rows = [each for each in self.disk_rows if each.number != row.number]
        self.disk_rows = sorted([*self.disk_rows, row], key=lambda each: each.number)
        if row.number in self.disk_paths:
            self._array.detach(row.number)
            self._memory.forget_disk(row.number)
        self.disk_paths[row.number] = path
        self._array.attach(row.number, self._make_disk(path))
        self._tell(DiskChanged(row.number))

    def detach_disk(self, number: int) -> None:
        """Use a disk no longer: it is gone, or about to go."""
        if self.disk_paths.pop(number, None) is not None:
            self._array.detach(number)
            self._memory.forget_disk(number)
            self._tell(DiskChanged(number))

    def replica_path(self, title: Title, extent: Extent, number: int) -> Path | None:
        """Where the replica on this disk lies; None if the disk is not there."""
        disk = self.disk_paths.get(number)
        return None if disk is None else extent_path(disk, title.folder, extent.number)

    def bad_replicas(self) -> set[tuple[str, int, int]]:
        """The replicas known to be bad: folder, extent number, disk number."""
        return set(self._bad)

    def mark_good(self, title: Title, extent: Extent, number: int) -> None:
        """Trust a replica again that was remade."""
        self._memory.forget((title.folder, extent.number), number)
        self._bad.discard((title.folder, extent.number, number))

    async def check_replica(
        self, title: Title, extent: Extent, number: int, *, from_disk: bool = False
    ) -> bool:
        """Whether the whole replica on this disk is there and is what was written.

        Those who want to watch go first. One that is not good is noted as bad, unless its disk is
        not there or does not answer; one that is good is trusted again.

        Args:
            title: whose.
            extent: which extent.
            number: the disk.
            from_disk: ask the disk itself, whatever is in memory.
        """
        for begin in range(0, extent.size, _CHECK_BYTES):
            stop = min(begin + _CHECK_BYTES, extent.size)
            wanted = _wanted(title, extent, begin, stop, background=True, direct=from_disk)
            try:
                await self._array.read(wanted, (number,))
            except DiskError:
                return False
        self._bad.discard((title.folder, extent.number, number))
        return True

    # --- reading

    def hold_at_most(self, count: int) -> None:
        """Keep so many bytes of what is asked for most in memory (mlock(2)); at first none."""
        self._memory.most_held_bytes = count

    def ready(self, title: Title, at: int, end: int) -> Ready | None:
        """What of bytes [at, end) of a film can be sent without waiting: a part from `at` on.

        Args:
            title: which film.
            at: first byte, inside the film.
            end: one past the last; what is returned ends no later, nor beyond the extent.

        Returns:
            None: a disk has to be asked, with `fetch`.
        """
        current = self._titles.get(title.id)
        if current is not title:
            extent, begin, stop = self._part(title, at, end)
            return self._resident.ready(title.folder, extent, begin, stop)
        number, begin = divmod(at, title.extent_bytes)
        extent = title.extents[number]
        stop = begin + end - at
        return self._resident.ready(title.folder, extent, begin, min(extent.size, stop))

    def note_fault(self, title: Title, at: int, disk: int, fault: str) -> None:
        """The replica with byte `at` on this disk cannot be sent: it is bad."""
        extent, _, _ = self._part(title, at, at + 1)
        self._note_bad((title.folder, extent.number), disk, fault)

    async def fetch(
        self, title: Title, at: int, end: int, *, background: bool = False, keep: bool = False
    ) -> Ready:
        """Wait for bytes [at, end) of a film, as far as one extent goes.

        Args:
            title: which film.
            at: first byte.
            end: one past the last.
            background: behind those who want to watch.
            keep: hand over the bytes themselves, whether they are in memory or not.

        Raises:
            ReadError: no replica of the extent holds what was written.
        """
        extent, begin, stop = self._part(title, at, end)
        if keep:
            return await self._fetch_bytes(title, extent, begin, stop, extent.disks)
        key = (title.folder, extent.number)
        good = [n for n in extent.disks if (*key, n) not in self._bad]
        fault = "none of its disks is there"
        # What is known to be bad may still be good where it matters: the last resort.
        for numbers in filter(None, (good, [n for n in extent.disks if n not in good])):
            for _ in range(_MOST_TRIES):
                # Only a disk that is not paged must hand over its bytes.
                paged = all((d := self._array.disk(n)) is None or d.paged for n in numbers)
                wanted = _wanted(title, extent, begin, stop, background=background, keep=not paged)
                try:
                    number, data = await self._array.read(wanted, numbers)
                except DiskError as error:
                    fault = str(error)
                    break
                if data is not None:
                    part = data[begin - wanted.low : stop - wanted.low]
                    return Ready(None, begin, len(part), number, part)
                file = self._memory.ready(key, number, begin, stop, extent)
                if file is not None:
                    return Ready(file, begin, stop - begin, number)
            else:
                # Memory is so short that nothing stays in it: hand over the bytes themselves.
                return await self._fetch_bytes(title, extent, begin, stop, numbers)
        raise ReadError(
            f"extent {extent.number} of '{title.id}' cannot be read from any of its "
            f"{len(extent.disks)} disks: {fault}"
        )

    async def read(self, title: Title, start: int, end: int) -> memoryview:
        """Bytes [start, end) of a film, verified.

        Args:
            title: one of this store's.
            start: first byte.
            end: one past the last, at most `MAX_READ_BYTES` further.

        Raises:
            ValueError: the range is not inside the film, or is too long.
            ReadError: no replica of some extent holds what was written.
        """
        if not 0 <= start <= end <= title.film_bytes or end - start > MAX_READ_BYTES:
            raise ValueError(f"bytes {start} to {end} of a film of {title.film_bytes}")
        parts = [
            await self.read_extent(title, extent, begin, stop)
            for extent, begin, stop in _cut(title, start, end)
        ]
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    async def read_extent(
        self, title: Title, extent: Extent, begin: int, stop: int, *, background: bool = False
    ) -> memoryview:
        """Bytes [begin, stop) of an extent, verified, from the best replica that holds them.

        Raises:
            ReadError: none does.
        """
        first = extent.number * title.extent_bytes
        found = None if background else self.ready(title, first + begin, first + stop)
        for _ in range(_MOST_TRIES):
            found = found or await self.fetch(
                title, first + begin, first + stop, background=background
            )
            data = found.view
            if data is None and found.file is not None:
                data = found.file.read_now(begin, stop)
            if data is not None:
                return data
            found = None
        ready = await self._fetch_bytes(title, extent, begin, stop, extent.disks)
        assert ready.view is not None
        return ready.view

    async def read_blocks(self, title: Title, start: int, end: int) -> bytes:
        """Bytes [start, end) of the hashes of a title's blocks, verified.

        Raises:
            ReadError: they are not there, or not what was written.
        """
        try:
            return await asyncio.to_thread(read_blocks, self.path, title, start, end)
        except ReadError:
            self.doubt_blocks(title.id)
            raise

    def doubt_blocks(self, title_id: str) -> None:
        """Have a title's block hashes looked at: somebody could not read them."""
        title = self._titles.get(title_id)
        if title is not None:
            self._tell(BlocksBad(title))

    def _part(self, title: Title, at: int, end: int) -> tuple[Extent, int, int]:
        """The extent that holds a byte, as it lies now, and the part of it up to `end`."""
        current = self._titles.get(title.id, title)
        # That id may be another film's by now: what was begun is not mixed with it.
        return part_of(current if current.folder == title.folder else title, at, end)

    async def _fetch_bytes(
        self, title: Title, extent: Extent, begin: int, stop: int, numbers: Iterable[int]
    ) -> Ready:
        wanted = _wanted(title, extent, begin, stop, keep=True)
        try:
            number, data = await self._array.read(wanted, tuple(numbers))
        except DiskError as error:
            raise ReadError(
                f"extent {extent.number} of '{title.id}' cannot be read: {error}"
            ) from error
        assert data is not None
        part = data[begin - wanted.low : stop - wanted.low]
        return Ready(None, begin, len(part), number, part)

    def _note_bad(self, key: ExtentKey, number: int, fault: str) -> None:
        """A replica is missing, short, unreadable or rotten."""
        self._resident.forget(key, number)
        title = self._titles.get(self._ids.get(key[0], ""))
        if title is None or number not in title.extents[key[1]].disks:
            return  # it was removed, or has moved, meanwhile
        replica = (*key, number)
        if replica in self._bad:
            return
        self._bad.add(replica)
        _log.warning(
            "bad replica: extent %d of '%s' on disk %d: %s", key[1], title.id, number, fault
        )
        self._tell(ReplicaBad(title, title.extents[key[1]], number, fault))

    def _tell(self, event: StoreEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)


def _wanted(
    title: Title,
    extent: Extent,
    begin: int,
    stop: int,
    *,
    background: bool = False,
    direct: bool = False,
    keep: bool = False,
) -> Wanted:
    key = (title.folder, extent.number)
    return Wanted(key, extent.size, extent.sums, begin, stop, background, direct, keep)


def _cut(title: Title, start: int, end: int) -> Iterator[tuple[Extent, int, int]]:
    """The parts of extents that make up bytes [start, end) of a film, in order."""
    if start == end:
        return
    size = title.extent_bytes
    for number in range(start // size, (end - 1) // size + 1):
        first = number * size
        extent = title.extents[number]
        yield extent, max(start - first, 0), min(end - first, extent.size)


def open_store(
    path: Path,
    *,
    make_disk: Callable[[Path], Disk] = RealDisk,
    scheduler: str = "lazy",
    reading: ArraySettings | None = None,
) -> Store:
    """Open a store for the exclusive use of this process, and clear away what a crash left.

    Args:
        path: its directory.
        make_disk: makes the reader of a disk's directory.
        scheduler: name of the policy that decides which replica is read, and when.
        reading: how disks are read.

    Raises:
        StoreUsageError: there is no store, one of another format, or no such scheduler.
        StoreError: another process uses it, or it is damaged.
    """
    # The catalog first: without one there is no store, and a lock file would be litter.
    catalog = Catalog(path / CATALOG_NAME)
    try:
        lock = StoreLock(path)
        try:
            catalog.migrate()
            paths = find_disks(catalog.disks(), catalog.store_id)
            clear_debris(catalog, paths)
            return Store(
                path,
                catalog,
                lock,
                disk_paths=paths,
                make_disk=make_disk,
                scheduler=scheduler,
                reading=reading or ArraySettings(),
            )
        except BaseException:
            lock.close()
            raise
    except BaseException:
        catalog.close()
        raise


def list_titles(path: Path) -> list[Title]:
    """The titles of a store, also while another process uses it.

    Raises:
        StoreUsageError: there is no store, or one of another format.
        StoreError: it is damaged.
    """
    catalog = Catalog(path / CATALOG_NAME)
    try:
        return catalog.titles()
    finally:
        catalog.close()
