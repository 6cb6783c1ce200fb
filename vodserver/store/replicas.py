"""Replicas on disks: written so that they are there, whole, or not at all."""

import errno
import os
from pathlib import Path
from typing import Final

from vodserver.errors import DiskError
from vodserver.store.files import read_fully
from vodserver.store.layout import draft_path, extent_path, flush_directory
from vodserver.store.sums import sums_of

__all__ = ["FULL", "disk_error", "is_intact", "write_replica", "write_verified"]

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""`errno` of a DiskError that says that the disk is full."""


def write_replica(
    disk: Path, folder: str, number: int, data: bytes, sums: bytes, *, replace: bool = False
) -> None:
    """Write one replica of an extent of a title, outside an ingest.

    Under its name there is always a whole replica or none: it is written under another, flushed,
    dropped from memory, read back and compared, and renamed. The caller notes it in the catalog
    before (`begin_write`) and places it after (`commit_replica`).

    Args:
        disk: the disk's directory, which must be there.
        folder: of its title.
        number: of its extent.
        data: the whole extent, verified by the caller.
        sums: its checksums.
        replace: take the place of a file that is there; else that is an error.

    Raises:
        DiskError: a replica is there already, or the disk is full (`errno` in `FULL`), read-only,
            broken, or does not return what was written. Nothing new is left behind.
    """
    path = extent_path(disk, folder, number)
    draft = draft_path(disk, folder, number)
    if not replace and path.exists():
        raise DiskError(f"{path} is there already")
    try:
        try:
            _make_folder(path.parent)
            draft.unlink(missing_ok=True)
            write_verified(disk, draft, data, sums)
            draft.rename(path)
            flush_directory(path.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except DiskError:
        raise
    except OSError as error:
        raise disk_error(disk, error) from error


def write_verified(disk: Path, path: Path, data: bytes, sums: bytes) -> None:
    """Write a new file, make its bytes durable, and see that they read back as they were.

    Raises:
        DiskError: the file is there already, or the disk `disk` failed it in some way.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
            # Out of memory with it, so that what is read back comes from the disk.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            same = _sums_read(fd, len(data)) == sums
        finally:
            os.close(fd)
    except OSError as error:
        raise disk_error(disk, error) from error
    if not same:
        raise DiskError(f"the disk {disk} does not return what was written to it: replace it")


def is_intact(path: Path, size: int, sums: bytes) -> bool:
    """Whether a file holds an extent as it was written; read from the disk, not from memory."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                return False
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return _sums_read(file.fileno(), size) == sums
    except OSError:
        return False


def _sums_read(fd: int, size: int) -> bytes:
    """The checksums of a file's first `size` bytes, or of what there is of them."""
    data = memoryview(bytearray(size))
    return sums_of(data[: read_fully(fd, data, 0, size, begins=True)])


def disk_error(disk: Path, error: OSError) -> DiskError:
    """What a disk's failure means and what to do about it; its `errno` is that of the failure."""
    if error.errno in FULL:
        told = DiskError(f"the disk {disk} is full: free some space, or add a disk")
    elif error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        told = DiskError(f"the disk {disk} cannot be written to: {error.strerror}")
    else:
        told = DiskError(f"the disk {disk} failed: {error.strerror}")
    told.errno = error.errno
    return told


def _make_folder(path: Path) -> None:
    try:
        path.mkdir()
    except FileExistsError:
        return
    flush_directory(path.parent)
