"""Does the kernel that we run on delay packets with NetEm? Tried, and measured.

Run as a program in a process of its own, since it turns the network namespace of its process upside
down; `kernel` starts it in a fresh namespace, `uml` inside user-mode Linux. Prints one JSON object.
"""

import ctypes
import errno
import json
import os
import socket
import statistics
import sys
import time
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from netem.backends.trial_mark import MARK

__all__ = ["TRIAL_DELAY_SECONDS", "enter_own_namespace", "measure_delay", "run_trial"]

TRIAL_DELAY_SECONDS: Final = 0.004
"""The delay of the source's own experiments."""

_CLONE_NEWNET: Final = 0x40000000  # <linux/sched.h>
_LOOPBACK_INDEX: Final = 1
_PACKETS: Final = 5
_PATIENCE_SECONDS: Final = 2.0


def enter_own_namespace() -> None:
    """Move this process to a network namespace of its own, which ends with it: nothing to remove.

    Raises:
        OSError: not allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def run_trial() -> dict[str, str | float | bool]:
    """Put NetEm on the loopback of this process's namespace and time packets through it.

    Returns:
        `works`, `reason`, and if it works `delay_seconds`: the median one-way delay seen.
    """
    try:
        with IPRoute() as routes:
            routes.link("set", index=_LOOPBACK_INDEX, state="up")
            routes.tc(
                "add",
                "netem",
                index=_LOOPBACK_INDEX,
                delay=round(TRIAL_DELAY_SECONDS * 1e6),
                limit=1000,
            )
    except NetlinkError as error:
        return {"works": False, "reason": _explain(error.code)}
    try:
        measured = measure_delay()
    except TimeoutError:
        return {"works": False, "reason": "packets did not come through NetEm at all"}
    # NetEm never lets a packet out early; a busy machine may let it out late.
    works = TRIAL_DELAY_SECONDS * 0.9 <= measured <= TRIAL_DELAY_SECONDS * 5
    return {
        "works": works,
        "reason": f"a delay of {TRIAL_DELAY_SECONDS * 1e3:g} ms was {measured * 1e3:.2f} ms",
        "delay_seconds": measured,
    }


def measure_delay() -> float:
    """Median seconds that a datagram takes over the loopback of this namespace, one way."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(_PATIENCE_SECONDS)
        delays = []
        for _ in range(_PACKETS):
            sent = time.monotonic()
            sender.sendto(b"?", receiver.getsockname())
            receiver.recv(1)
            delays.append(time.monotonic() - sent)
    return statistics.median(delays)


def _explain(code: int) -> str:
    if code == errno.ENOENT:
        return "this kernel has no NetEm (module sch_netem)"
    if code in {errno.EPERM, errno.EACCES}:
        return "changing queueing disciplines needs root"
    return f"the kernel refused a netem queueing discipline: {os.strerror(code)}"


def main() -> None:
    """Print what a trial in a fresh namespace gives."""
    try:
        enter_own_namespace()
    except OSError as error:
        result: dict[str, str | float | bool] = {
            "works": False,
            "reason": f"cannot make a network namespace ({error.strerror}): run it as root",
        }
    else:
        result = run_trial()
    sys.stdout.write(MARK + json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
