"""How much of a machine's memory a server may keep for itself."""

import os
from pathlib import Path
from typing import Final

__all__ = ["held_share", "memory_bytes"]

_PART: Final = 4
"""One in so many bytes of memory: what is kept is lost to all other programs."""

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUP: Final = Path("/proc/self/cgroup")


def held_share(held_bytes: int | None, processes: int = 1) -> int:
    """How much one of so many processes may keep in memory.

    Args:
        held_bytes: how much all of them may; None for a quarter of what there is.
        processes: how many they are.
    """
    whole = memory_bytes() // _PART if held_bytes is None else held_bytes
    return whole // processes


def memory_bytes(groups: Path = _GROUPS, own: Path = _OWN_GROUP) -> int:
    """Memory of this machine, or what this process's control group may have, if that is less.

    Args:
        groups: where control groups (v2) are told of.
        own: which one is ours.
    """
    try:
        least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return least
    for line in lines:
        hierarchy, _, name = line.partition("::")
        if hierarchy != "0":
            continue
        group = groups / name.lstrip("/")
        for each in (group, *group.parents):
            if not each.is_relative_to(groups):
                break
            try:
                least = min(least, int((each / "memory.max").read_text()))
            except (OSError, ValueError):
                continue  # no such file, or "max"
    return least
