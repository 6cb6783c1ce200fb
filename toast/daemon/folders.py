"""Where films lie: one folder each."""

import contextlib
import os
from pathlib import Path

from toast.swarm import Metainfo

__all__ = ["fingerprint", "folder_name", "stored_bytes"]

_MOST_FOLDER_BYTES = 80


def folder_name(metainfo: Metainfo) -> str:
    """A film's folder: its name for people, its id against namesakes.

    It depends on nothing but the .torrent, so that it is found again without the database.
    """
    stem = (
        Path(metainfo.name).stem.encode()[:_MOST_FOLDER_BYTES].decode("utf-8", "ignore").strip(". ")
    )
    return f"{stem}-{metainfo.info_hash.hex()[:12]}".lstrip("-")


def fingerprint(path: Path) -> str | None:
    """What changes whenever anybody writes to a file; None if it is not there. Blocking."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}"


def stored_bytes(folder: Path) -> int:
    """What a folder's files take on the disk: holes in them take nothing. Blocking."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(Path(place) / name).st_blocks * 512
    return total
