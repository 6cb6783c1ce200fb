"""Asks disks how they are: whether they are there, how full, whether they take a write."""

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Final

from vodserver.store.layout import ID_NAME
from vodserver.store.replicas import FULL
from vodserver.store.upkeep.health import DiskFacts, WriteOutcome

__all__ = ["id_of", "look_at"]

_PROBE_NAME: Final = ".vod-probe"
_PROBE_BYTES: Final = 4096
_MAX_ID_BYTES: Final = 4096
_REFUSED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ELOOP})


def look_at(path: Path, store_id: str, disk_id: str, *, write: bool) -> DiskFacts:
    """Ask a disk; may block for as long as the disk does.

    Args:
        path: where it should be.
        store_id: the store that it belongs to.
        disk_id: the disk that it should be.
        write: write a few bytes too.
    """
    try:
        with (path / ID_NAME).open("rb") as file:
            found = _parse_id(file.read(_MAX_ID_BYTES))
        room = os.statvfs(path)
        device = path.stat().st_dev
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _GONE:
            return DiskFacts(present=False, fault=f"{path} is not there or not mounted")
        return DiskFacts(present=None, fault=reason)
    if found != (store_id, disk_id):
        return DiskFacts(present=False, fault=f"{path} is another disk")
    outcome, fault = _try_write(path) if write else ("untried", "")
    return DiskFacts(
        present=True,
        fault=fault,
        free_bytes=room.f_frsize * room.f_bavail,
        total_bytes=room.f_frsize * room.f_blocks,
        device=device,
        write=outcome,
    )


def id_of(path: Path) -> tuple[str, str] | None:
    """The store and the disk that a directory says it is; None if it says nothing."""
    try:
        with (path / ID_NAME).open("rb") as file:
            return _parse_id(file.read(_MAX_ID_BYTES))
    except OSError:
        return None


def _parse_id(content: bytes) -> tuple[str, str] | None:
    try:
        value = json.loads(content)
        return str(value["store"]), str(value["disk"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _try_write(path: Path) -> tuple[WriteOutcome, str]:
    name = path / _PROBE_NAME
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(fd, bytes(_PROBE_BYTES))
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            return "full", reason
        return ("read-only" if error.errno in _REFUSED else "failed"), reason
    finally:
        with contextlib.suppress(OSError):
            name.unlink()
    return "done", ""
