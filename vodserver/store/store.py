"""A store, opened: its titles, and verified reads of them from whichever replica is best."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from vodserver.errors import DiskError, ReadError
from vodserver.scheduling import Scheduler, ShortestQueue
from vodserver.store.catalog import CATALOG_NAME, Catalog, DiskRow, Extent, Title
from vodserver.store.disks import Disk, DiskStatistics, RealDisk
from vodserver.store.events import (
    ReplicaBad,
    StoreEvent,
    TitleAdded,
    TitleChanged,
    TitleRemoved,
)
from vodserver.store.layout import StoreLock, extent_path, find_disks
from vodserver.store.removal import clear_debris
from vodserver.store.sums import SUM_SPAN, matches

__all__ = ["MAX_READ_BYTES", "Store", "StoreStatistics", "list_titles", "open_store"]

MAX_READ_BYTES: Final = 4 * 1024 * 1024
"""The most that one `Store.read` may ask for: whoever wants more reads on when it has been sent."""

READ_TIMEOUT_SECONDS: Final = 10.0
"""Far beyond any queue that serves viewers in time, and short of what makes a player give up."""

_CHECK_BYTES: Final = 16 * SUM_SPAN

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
        disk_rows: every disk that it was made with.
        disk_paths: where each disk is that is there, by number.
        on_bad_replica: called with title, extent and disk number when a replica turns out bad.
    """

    def __init__(
        self,
        path: Path,
        catalog: Catalog,
        lock: StoreLock,
        *,
        disk_paths: Mapping[int, Path],
        disks: Mapping[int, Disk],
        scheduler: Scheduler,
        read_timeout: float,
    ) -> None:
        self.path = path
        self.catalog = catalog
        self.disk_rows: list[DiskRow] = catalog.disks()
        self.disk_paths = disk_paths
        self.on_bad_replica: Callable[[Title, Extent, int], None] | None = None
        self._lock = lock
        self._disks = disks
        self._scheduler = scheduler
        self._read_timeout = read_timeout
        self._bad: set[tuple[str, int, int]] = set()
        self._titles = {title.id: title for title in catalog.titles()}
        self._listeners: list[Callable[[StoreEvent], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the disks and let other processes have the store."""
        for disk in self._disks.values():
            disk.close()
        self.catalog.close()
        self._lock.close()

    def titles(self) -> list[Title]:
        """Every title, in the order in which they were added."""
        return list(self._titles.values())

    def title(self, title_id: str) -> Title | None:
        """The title of this id, if there is one."""
        return self._titles.get(title_id)

    def include(self, title: Title) -> None:
        """Take notice of a title that was just committed to the catalog, or changed there."""
        known = title.id in self._titles
        self._titles[title.id] = title
        self._tell(TitleChanged(title) if known else TitleAdded(title))

    def exclude(self, title_id: str) -> None:
        """Take notice of a title that was just removed from the catalog."""
        title = self._titles.pop(title_id, None)
        if title is not None:
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

    def bad_replicas(self) -> set[tuple[str, int, int]]:
        """The replicas known to be bad: folder, extent number, disk number."""
        return set(self._bad)

    def mark_good(self, title: Title, extent: Extent, number: int) -> None:
        """Trust a replica again that was remade."""
        self._bad.discard((title.folder, extent.number, number))

    def _tell(self, event: StoreEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def statistics(self) -> StoreStatistics:
        """What the disks did."""
        return StoreStatistics(
            {number: disk.statistics() for number, disk in self._disks.items()}, len(self._bad)
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

    async def read_extent(self, title: Title, extent: Extent, begin: int, stop: int) -> memoryview:
        """Bytes [begin, stop) of an extent, verified, from the best replica that holds them.

        Raises:
            ReadError: none does.
        """
        for number in self._ranked(title, extent):
            data = await self._try_replica(title, extent, number, begin, stop)
            if data is not None:
                return data
        raise ReadError(
            f"extent {extent.number} of '{title.id}' cannot be read from any of its "
            f"{len(extent.disks)} disks"
        )

    async def check_replica(self, title: Title, extent: Extent, number: int) -> bool:
        """Whether the whole replica on this disk is there and is what was written."""
        for begin in range(0, extent.size, _CHECK_BYTES):
            stop = min(begin + _CHECK_BYTES, extent.size)
            # What is in memory is read without waiting: let those who want to watch go first.
            await asyncio.sleep(0)
            if await self._try_replica(title, extent, number, begin, stop) is None:
                return False
        return True

    def replica_path(self, title: Title, extent: Extent, number: int) -> Path | None:
        """Where the replica on this disk lies; None if the disk is not there."""
        disk = self.disk_paths.get(number)
        return None if disk is None else extent_path(disk, title.folder, extent.number)

    def _ranked(self, title: Title, extent: Extent) -> list[int]:
        """The disks to try, best first; replicas known to be bad are a last resort."""
        there = [number for number in extent.disks if number in self._disks]
        queues = [self._disks[number].queued_bytes for number in there]
        ranked = [there[n] for n in self._scheduler.order(queues)]
        return sorted(ranked, key=lambda n: (title.folder, extent.number, n) in self._bad)

    async def _try_replica(
        self, title: Title, extent: Extent, number: int, begin: int, stop: int
    ) -> memoryview | None:
        disk = self._disks.get(number)
        if disk is None:
            return None
        # Checksums cover whole spans: read those, and cut out what was asked for.
        low = begin // SUM_SPAN * SUM_SPAN
        high = min(-(-stop // SUM_SPAN) * SUM_SPAN, extent.size)
        replica = (title.folder, extent.number, number)
        try:
            async with asyncio.timeout(self._read_timeout):
                data = await disk.read((title.folder, extent.number), low, high - low)
            fault = "" if matches(data, low, extent.sums) else "its checksum does not match"
        except TimeoutError:
            fault = f"the disk did not answer within {self._read_timeout:g} s"
        except DiskError as error:
            fault = str(error)
        if not fault:
            self._bad.discard(replica)
            return data[begin - low : stop - low]
        if replica not in self._bad:
            self._bad.add(replica)
            _log.warning(
                "bad replica: extent %d of '%s' on disk %d: %s",
                *(extent.number, title.id, number, fault),
            )
            if self.on_bad_replica is not None:
                self.on_bad_replica(title, extent, number)
            self._tell(ReplicaBad(title, extent, number, fault))
        return None


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
    scheduler: Scheduler | None = None,
    read_timeout: float = READ_TIMEOUT_SECONDS,
) -> Store:
    """Open a store for the exclusive use of this process, and clear away what a crash left.

    Args:
        path: its directory.
        make_disk: makes the reader of a disk's directory.
        scheduler: which replica to read; shortest queue if not given.
        read_timeout: seconds after which a disk that does not answer is passed over.

    Raises:
        StoreUsageError: there is no store, or one of another format.
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
            disks = {number: make_disk(disk) for number, disk in paths.items()}
            return Store(
                path,
                catalog,
                lock,
                disk_paths=paths,
                disks=disks,
                scheduler=scheduler or ShortestQueue(),
                read_timeout=read_timeout,
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
