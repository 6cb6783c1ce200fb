"""Network namespaces without names: made, configured, entered, and emptied of processes.

A namespace here is an open file and nothing else: no name in /run/netns, so there is nothing that
could be left behind. It ends with its last process and the last open file that refers to it.
"""

import contextlib
import ctypes
import errno
import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from netem.errors import NetemError

__all__ = [
    "end_processes_in",
    "enter",
    "leaving",
    "make",
    "pin_congestion_control",
]

_CLONE_NEWNET: Final = 0x40000000  # <linux/sched.h>
_OWN: Final = "/proc/self/ns/net"
_TCP: Final = Path("/proc/sys/net/ipv4")  # it shows the namespace of whoever opens a file in it
_PATIENCE_SECONDS: Final = 5.0


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def make() -> int:
    """Move this thread to a network namespace of its own; returns an open file that refers to it.

    Raises:
        NetemError: not allowed.
    """
    try:
        _call("unshare", _CLONE_NEWNET)
    except OSError as error:
        if error.errno in {errno.EPERM, errno.EACCES}:
            raise NetemError("making network namespaces needs root: run it with sudo") from error
        raise NetemError(f"no network namespace can be made: {error.strerror}") from error
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def enter(namespace: int) -> None:
    """Move this thread to a namespace.

    Args:
        namespace: an open file that refers to it.

    Raises:
        NetemError: not allowed, or it is none.
    """
    try:
        _call("setns", namespace, _CLONE_NEWNET)
    except OSError as error:
        raise NetemError(f"the network namespace cannot be entered: {error.strerror}") from error


@contextmanager
def leaving() -> Iterator[None]:
    """Return to the namespace of now in the end."""
    home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        enter(home)
        os.close(home)


def pin_congestion_control(name: str | None) -> str:
    """Set TCP's congestion control of this thread's namespace, and forget what TCP learns of hosts.

    TCP otherwise remembers round trips and windows of hosts from one connection to the next, and
    no second measurement would be of a cold connection.

    Args:
        name: such as "cubic"; None for the machine's default.

    Returns:
        What is in force.

    Raises:
        NetemError: this kernel has none of that name, or does not allow it in namespaces.
    """
    file = _TCP / "tcp_congestion_control"
    try:
        (_TCP / "tcp_no_metrics_save").write_text("1", encoding="ascii")
        (_TCP / "ping_group_range").write_text("0 0", encoding="ascii")  # root may ping
        wanted = name or file.read_text(encoding="ascii").strip()
        file.write_text(wanted, encoding="ascii")
    except PermissionError as error:
        raise NetemError(
            f"congestion control {name or 'of the machine'} cannot be pinned in a namespace: add it"
            " to the sysctl net.ipv4.tcp_allowed_congestion_control"
        ) from error
    except OSError as error:
        raise NetemError(
            f"congestion control {name or 'of the machine'} cannot be pinned: {error.strerror};"
            " the sysctl net.ipv4.tcp_available_congestion_control lists what there is"
        ) from error
    return wanted


def end_processes_in(namespaces: Collection[int]) -> int:
    """End every process in these namespaces, and wait until they are gone.

    Args:
        namespaces: open files that refer to them, which are closed; this process must be in none
            of them. Who is about to enter through one of these files then finds it gone, before
            or after entering (`netem.enter`), and leaves by itself.

    Returns:
        How many there were.
    """
    inodes = {os.fstat(namespace).st_ino for namespace in namespaces}
    for namespace in namespaces:
        os.close(namespace)
    ended: set[int] = set()
    until = time.monotonic() + _PATIENCE_SECONDS
    while (found := _processes_in(inodes)) and time.monotonic() < until:
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        ended |= found
        time.sleep(0.005)
    return len(ended)


def _processes_in(inodes: Collection[int]) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it has just ended
                if (entry / "ns/net").stat().st_ino in inodes:
                    found.add(int(entry.name))
    return found
