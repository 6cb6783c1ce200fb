"""The extents of a film on its way in, written to their disks, or to others where those fail."""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vodserver.allocation import Allocation, replacement
from vodserver.errors import AllocationError, DiskError
from vodserver.store.catalog import Catalog, DiskRow, Extent
from vodserver.store.layout import capacity_of, extent_path, flush_directory
from vodserver.store.replicas import disk_error, is_intact, write_verified
from vodserver.store.sums import sums_of

__all__ = ["ExtentWriter", "Writing"]


@dataclass(slots=True)
class Writing:
    """An extent that is being written.

    Attributes:
        folder: of the film.
        number: its position in the film.
        data: its bytes.
        sums: their checksums.
        disks: where it goes.
        trusted: an earlier `add` noted it with the same checksums and disks.
        jobs: the writes under way, one for each of `disks`.
    """

    folder: str
    number: int
    data: bytes
    sums: bytes
    disks: list[int]
    trusted: bool
    jobs: "list[Future[None]]" = field(default_factory=list)


class ExtentWriter:
    """Writes the extents of one folder, all replicas of one at a time.

    A disk that fails a write (full, read-only, broken, or not returning what was written) is
    passed over from then on, as long as there are others that can stand in.

    Args:
        catalog: a connection of the thread that uses this.
        paths: where each disk is that is there, by number.
        policy: places the extents.
        rng: chance for the choice of disks that stand in.
        notice: told in a line of a disk that is passed over.
    """

    def __init__(
        self,
        catalog: Catalog,
        paths: dict[int, Path],
        policy: Allocation,
        rng: np.random.Generator,
        notice: Callable[[str], None],
    ) -> None:
        self._catalog = catalog
        self._paths = paths
        self._policy = policy
        self._rng = rng
        self._notice = notice
        self._failed: dict[int, DiskError] = {}
        self._pool = ThreadPoolExecutor(policy.copies, "ingest")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def room(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What each disk holds and how large it is, shape (disks,); 0 where it takes no extents."""
        rows = self._catalog.disks()
        held = self._catalog.used_bytes()
        used = np.array([held.get(row.number, 0) for row in rows], dtype=np.int64)
        capacity = np.zeros(len(rows), dtype=np.int64)
        for place, row in enumerate(rows):
            if self._takes(row):
                capacity[place] = row.capacity_bytes or capacity_of(self._paths[row.number]) or 1
        return used, capacity

    def _takes(self, row: DiskRow) -> bool:
        return (
            row.state == "active" and row.number in self._paths and row.number not in self._failed
        )

    def begin(
        self, folder: str, number: int, data: bytes, disks: Sequence[int], known: Extent | None
    ) -> Writing:
        """Begin to write an extent.

        Args:
            folder: of the film.
            number: of the extent.
            data: all of it.
            disks: where it should go.
            known: the extent as an earlier `add` noted it; replicas of it that are on their disks
                as the film has them now are left alone.

        Raises:
            DiskError: too few disks take it.
        """
        sums = sums_of(data)
        if known is not None and (known.size, known.sums) == (len(data), sums):
            writing = Writing(folder, number, data, sums, list(known.disks), trusted=True)
        else:
            writing = Writing(folder, number, data, sums, list(disks), trusted=False)
        usable = {row.number for row in self._catalog.disks() if self._takes(row)}
        for place, disk in enumerate(writing.disks):
            if disk not in usable:
                writing.disks[place] = self._stand_in(writing, disk)
        for disk in writing.disks:
            # A disk that was passed over once may be wanted again: nobody may clear it meanwhile.
            self._catalog.forget_garbage(folder, number, disk)
        writing.jobs = [self._pool.submit(self._put, writing, disk) for disk in writing.disks]
        return writing

    def finish(self, writing: Writing) -> Extent:
        """Wait until every replica of an extent is durable.

        Raises:
            DiskError: too few disks take it.
        """
        wait(writing.jobs)  # all of them: who gives up must not meet one that still writes
        for place, job in enumerate(writing.jobs):
            try:
                job.result()
            except DiskError as error:
                self._fail(writing.disks[place], error)
                self._replace(writing, place)
        return Extent(writing.number, len(writing.data), tuple(writing.disks), writing.sums)

    def complete(self, folder: str, extents: Sequence[Extent]) -> None:
        """Make the names in a film's folder durable, and remove those that are no replicas.

        An `add` that was killed may have written to a disk that stood in for another, which the
        next one then did not need.

        Raises:
            DiskError: a disk failed.
        """
        placed = {
            (disk, extent_path(self._paths[disk], folder, extent.number))
            for extent in extents
            for disk in extent.disks
        }
        for disk, root in self._paths.items():
            with contextlib.suppress(OSError):  # it has nothing of the film, or fails: fsck tells
                for path in list(extent_path(root, folder, 0).parent.iterdir()):
                    if path.name.isdigit() and (disk, path) not in placed:
                        path.unlink()
        for disk in sorted({disk for disk, _ in placed}):
            path = extent_path(self._paths[disk], folder, 0).parent
            try:
                flush_directory(path)
                flush_directory(path.parent)
            except OSError as error:
                raise disk_error(self._paths[disk], error) from error

    def _replace(self, writing: Writing, place: int) -> None:
        """Write a replica whose disk failed to one that does not."""
        while True:
            disk = self._stand_in(writing, writing.disks[place])
            writing.disks[place] = disk
            try:
                self._put(writing, disk)
            except DiskError as error:
                self._fail(disk, error)
            else:
                return

    def _fail(self, disk: int, error: DiskError) -> None:
        if disk not in self._failed:
            self._failed[disk] = error
            self._notice(f"{error}; the film goes onto other disks")

    def _stand_in(self, writing: Writing, disk: int) -> int:
        """A disk in the place of one that takes no extents.

        Raises:
            DiskError: there is none; what this one failed with.
        """
        try:
            other = replacement(self._policy, writing.disks, *self.room(), self._rng)
        except AllocationError as error:
            where = self._paths.get(disk, f"number {disk}")
            raise self._failed.get(disk) or DiskError(
                f"the disk {where} takes no films now, and no other can stand in for it"
            ) from error
        # Something of the extent may be on it: of this attempt, or of one that was killed.
        self._catalog.note_garbage(writing.folder, writing.number, disk)
        return other

    def _put(self, writing: Writing, disk: int) -> None:
        """Write one replica, unless it is there; in a thread of the pool."""
        root = self._paths[disk]
        path = extent_path(root, writing.folder, writing.number)
        if writing.trusted and is_intact(path, len(writing.data), writing.sums):
            return
        try:
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            write_verified(root, path, writing.data, writing.sums)
        except BaseException as error:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            if isinstance(error, OSError) and not isinstance(error, DiskError):
                raise disk_error(root, error) from error
            raise
