"""Start a program all of which ends with its parent, on one core.

As a program: `python -m netem.guest.launch PARENT COMMAND...`.

User-mode Linux runs its guest's programs as processes of this machine, and killed with SIGKILL it
cannot end them. In a process namespace of its own the kernel does it: with the first process all
others go. Where no such namespace can be made, it runs without.

It runs one thing at a time, but in two processes: the guest's program, and the guest's kernel, to
which each of its system calls and page faults is handed over and back. Between two cores each
hand-over has to wake the other one, which took 290 microseconds where one core took 18.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Final

from netem.enter import end_with_parent

__all__ = ["main"]

_CLONE_NEWUSER: Final = 0x10000000  # <linux/sched.h>
_CLONE_NEWPID: Final = 0x20000000
_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>


def _own_processes() -> None:
    """Have the next child begin a process namespace, if that is allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWPID) == 0:
        return
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWPID) == 0:  # anyone may, where it is allowed at all
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _stay_on_one_core() -> None:
    """Of those that we may have, another for the next one that is started."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def main(words: list[str]) -> int:
    """Run the command; returns its exit code."""
    parent, *command = words
    end_with_parent(int(parent))
    _stay_on_one_core()
    _own_processes()
    alive, _held = os.pipe()  # the other end is open for as long as we are
    child = os.fork()
    if not child:
        os.close(_held)
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.set_blocking(alive, False)
        try:
            os.read(alive, 1)
        except BlockingIOError:  # nothing to read, and nobody has closed it: our parent lives
            os.close(alive)
            os.execvp(command[0], command)  # noqa: S606  (no shell is wanted)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    return abs(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
