"""What lies where in a store's directories, and how a store comes into being.

STORE/catalog.sqlite    which titles there are, and where their extents lie
STORE/blocks/FOLDER     hashes of a title's blocks (see blocks.py)
STORE/lock              held by the one process that uses the store
DISK/vod-disk.json      which store and which disk this directory is
DISK/extents/FOLDER/N   extent N of a title (FOLDER is random, the same on every disk)
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from vodserver.allocation import with_copies
from vodserver.errors import AllocationError, DiskError, StoreError, StoreUsageError
from vodserver.store.catalog import CATALOG_NAME, Catalog, DiskRow

__all__ = [
    "StoreLock",
    "capacity_of",
    "create_store",
    "disk_owner",
    "draft_path",
    "extent_path",
    "find_disks",
    "flush_directory",
    "remove_folder",
]

ID_NAME: Final = "vod-disk.json"
EXTENTS_NAME: Final = "extents"
LOCK_NAME: Final = "lock"
_MAX_ID_BYTES = 4096


def extent_path(disk: Path, folder: str, number: int) -> Path:
    """Where extent `number` of the title with this folder lies on a disk."""
    return disk / EXTENTS_NAME / folder / f"{number:06d}"


def draft_path(disk: Path, folder: str, number: int) -> Path:
    """Where a replica is written before it gets its name, outside an ingest."""
    path = extent_path(disk, folder, number)
    return path.with_name(f".{path.name}.new")


def capacity_of(disk: Path) -> int:
    """Size of the file system that a disk's directory is on, in bytes; 0 if it does not say."""
    try:
        found = os.statvfs(disk)
    except OSError:
        return 0
    return found.f_frsize * found.f_blocks


def flush_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class StoreLock:
    """The exclusive use of a store, until closed or until the process ends.

    Raises:
        StoreError: another process has it.
    """

    def __init__(self, store: Path) -> None:
        try:
            self._fd = os.open(store / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"cannot lock the store {store}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise StoreError(
                f"the store {store} is in use by process {holder or 'unknown'}: "
                "stop that process first"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let others use the store."""
        os.close(self._fd)


def create_store(
    store: Path, disks: Sequence[Path], *, allocation: str = "rda", copies: int | None = None
) -> list[DiskRow]:
    """Make an empty store over the given directories, which are made where they do not exist.

    Args:
        store: directory of the catalog.
        disks: one directory per disk; their order is the disks' numbering.
        allocation: name of the policy that will place the titles.
        copies: replicas of each extent; as many as the policy makes if None.

    Returns:
        The disks as the catalog has them.

    Raises:
        AllocationError: no such policy, or not with so many copies, or too few disks for it.
        StoreUsageError: one disk twice, one that belongs to a store, or a store is there.
        DiskError: a directory cannot be made or written. Nothing stays behind.
    """
    policy = with_copies(allocation, copies)
    if len(disks) < policy.min_disks:
        raise AllocationError(
            f"placement '{policy.name}' needs {policy.min_disks} disks and there are "
            f"{len(disks)}: give more --disk directories"
        )
    paths = [Path(os.path.realpath(disk)) for disk in disks]
    if len(set(paths)) != len(paths):
        raise StoreUsageError("the same directory is given as two disks: name each one once")
    if (store / CATALOG_NAME).exists():
        raise StoreUsageError(f"there is a store in {store} already")
    taken = [path for path in paths if (path / ID_NAME).exists()]
    if taken:
        raise StoreUsageError(f"{taken[0]} is a disk of a store already: choose another directory")
    store_id = secrets.token_hex(16)
    rows = [DiskRow(n, secrets.token_hex(16), path) for n, path in enumerate(paths)]
    with contextlib.ExitStack() as undo:
        for row in rows:
            _make_directory(row.path, undo)
            _write_id(row, store_id, undo)
        _make_directory(store, undo)
        # The catalog comes last and under its name only when whole: it is what makes the store.
        draft = store / f".{CATALOG_NAME}.new"
        draft.unlink(missing_ok=True)
        undo.callback(draft.unlink, missing_ok=True)
        rows = [replace(row, capacity_bytes=capacity_of(row.path)) for row in rows]
        Catalog.create(draft, store_id, policy.name, rows).close()
        draft.rename(store / CATALOG_NAME)
        flush_directory(store)
        undo.pop_all()
    return rows


def _make_directory(path: Path, undo: contextlib.ExitStack) -> None:
    missing = [path, *path.parents]
    missing = missing[: next(n for n, parent in enumerate(missing) if parent.exists())]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"cannot make the directory {path}: {error.strerror}") from error
    for made in reversed(missing):
        undo.callback(_remove_if_empty, made)


def _write_id(row: DiskRow, store_id: str, undo: contextlib.ExitStack) -> None:
    try:
        # Undone only once made: what was there before is not ours to remove.
        (row.path / EXTENTS_NAME).mkdir()
        undo.callback(_remove_if_empty, row.path / EXTENTS_NAME)
        undo.callback((row.path / ID_NAME).unlink, missing_ok=True)
        with (row.path / ID_NAME).open("x", encoding="utf-8") as file:
            json.dump({"store": store_id, "disk": row.id}, file)
            file.flush()
            os.fsync(file.fileno())
        flush_directory(row.path)
    except OSError as error:
        raise DiskError(f"cannot write to the disk {row.path}: {error.strerror}") from error


def _remove_if_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir()


def find_disks(rows: Sequence[DiskRow], store_id: str) -> dict[int, Path]:
    """Where each disk of the store is now.

    A disk is what its id file says, not what its path says: two mounts that were swapped are
    found, and a directory on which the disk is not mounted is not taken for it.

    Returns:
        Directory by disk number; a disk that is not there is left out.
    """
    by_id = {row.id: row.number for row in rows}
    found: dict[int, Path] = {}
    for row in rows:
        number = by_id.get(_disk_id(row.path, store_id))
        if number is not None:
            found[number] = row.path
    return found


def _disk_id(path: Path, store_id: str) -> str:
    owner = disk_owner(path)
    return owner[1] if owner is not None and owner[0] == store_id else ""


def disk_owner(path: Path) -> tuple[str, str] | None:
    """Ids of the store and of the disk that a directory is; None if it is no disk of a store."""
    try:
        with (path / ID_NAME).open("rb") as file:
            value = json.loads(file.read(_MAX_ID_BYTES))
        return str(value["store"]), str(value["disk"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def remove_folder(folder: str, disks: Iterable[Path]) -> bool:
    """Remove a title's folder, with its extents, from the disks given; whether none is left.

    Raises:
        StoreError: it is no name of a folder: nothing outside `extents` is ever removed.
    """
    if folder in {"", ".", ".."} or "/" in folder:
        raise StoreError(f"'{folder}' is no folder of a title: the catalog is damaged")
    folders = [disk / EXTENTS_NAME / folder for disk in disks]
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)
    return not any(path.exists() for path in folders)
