"""What a killed keeper leaves: programs that still run in its hosts, and hold their namespaces.

A namespace says in the alias of its loopback which process keeps it. So these programs can be
found without any file that could be stale itself, and nobody else's are touched.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from netem.errors import NetemError
from netem.namespaces import end_processes_in, enter, leaving

__all__ = ["label", "sweep"]

_OWN: Final = Path("/proc/self/ns/net")
_LOOPBACK_INDEX: Final = 1
_LABEL: Final = "toast-netem"


def label(routes: IPRoute) -> None:
    """Note in this thread's namespace who keeps it, and bring its loopback up.

    Args:
        routes: netlink of it.
    """
    words = f"{_LABEL} {os.getpid()} {_start_of(os.getpid())}"
    routes.link("set", index=_LOOPBACK_INDEX, state="up", ifalias=words)


def sweep() -> int:
    """End programs in namespaces whose keeper is no more. Nothing without the right to look.

    Returns:
        How many there were.
    """
    own = _OWN.stat().st_ino
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it has just ended, or is another user's
                inode = (entry / "ns/net").stat().st_ino
                if inode != own and inode not in found:
                    found[inode] = os.open(entry / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
    left = []
    for namespace in found.values():
        if _is_left(namespace):
            left.append(namespace)
        else:
            os.close(namespace)
    return end_processes_in(left) if left else 0


def _is_left(namespace: int) -> bool:
    """Whether it is one of ours whose keeper has ended."""
    try:
        with leaving():
            enter(namespace)
            with IPRoute() as routes:
                (loopback,) = routes.get_links(_LOOPBACK_INDEX)
    except (NetemError, NetlinkError, OSError, ValueError):
        return False
    words = (loopback.get_attr("IFLA_IFALIAS") or "").split()
    if len(words) != 3 or words[0] != _LABEL or not words[1].isdecimal():
        return False
    return _start_of(int(words[1])) != words[2]


def _start_of(process: int) -> str:
    """When a process was started, in the kernel's own clock; empty if there is none."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]  # field 22 of proc(5)
