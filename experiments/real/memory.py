"""How much memory a run holds: its programs, and the files that lie in memory."""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = [
    "MEMORY_FOLDER",
    "free_bytes",
    "held_bytes",
    "in_memory",
    "stay_in_memory",
    "stored_bytes",
]

MEMORY_FOLDER: Final = Path("/dev/shm")  # noqa: S108  # looked at; what lies there has names of its own
_LOCK_ALL: Final = 1 | 2 | 4  # MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT
_KINDS: Final = ("RssAnon:", "RssFile:")


def held_bytes(pids: Iterable[int]) -> int:
    """Memory of these programs, without mapped files of a file system in memory.

    Libraries that several share count once for each: the figure is a little too high.
    """
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        except OSError:
            continue  # it has ended
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith(_KINDS))
    return total


def stored_bytes(folder: Path) -> int:
    """What the files below a folder take, holes not counted; each once, however often linked."""
    seen: set[int] = set()
    total = 0
    stack = [folder]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(Path(entry.path))
                        continue
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_ino not in seen:
                        seen.add(facts.st_ino)
                        total += facts.st_blocks * 512
        except FileNotFoundError:
            continue  # a viewer has just left, and its folder with it
    return total


def in_memory(folder: Path) -> bool:
    """Whether what is written there takes memory."""
    return MEMORY_FOLDER.exists() and folder.stat().st_dev == MEMORY_FOLDER.stat().st_dev


def free_bytes(folder: Path) -> int:
    """What may be written there; of a file system in memory no more than memory is free."""
    facts = os.statvfs(folder)
    free = facts.f_bavail * facts.f_frsize
    if not in_memory(folder):
        return free
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return min(free, 1024 * available)


def stay_in_memory() -> bool:
    """Have the kernel never drop what this process has touched, nor read it from a disk again.

    What measures time must not wait for a disk that has nothing to do with what is measured.

    Returns:
        Whether it will: it takes a privilege.
    """
    lock = getattr(ctypes.CDLL(None), "mlockall", None)
    return lock is not None and lock(_LOCK_ALL) == 0
