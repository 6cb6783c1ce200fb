"""Run a program in a host: `python -m netem.enter NAMESPACE PARENT COMMAND...`.

NAMESPACE is a file that refers to the host's network namespace; PARENT the process with which the
program must end, 0 for none. Becomes the program: same process id, same standard streams.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Final

from netem import namespaces
from netem.errors import NetemError

__all__ = ["become", "end_with_parent"]

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>


def end_with_parent(parent: int) -> None:
    """End this process by SIGKILL when its parent ends, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before we said so
        os.kill(os.getpid(), signal.SIGKILL)


def become(namespace: str, parent: int, command: list[str]) -> None:
    """Enter the host, and become the program.

    Raises:
        NetemError: the host is gone, or the program cannot be started.
    """
    if parent:
        end_with_parent(parent)
    try:
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NetemError(f"the network is not up any more: {error.strerror}") from error
    namespaces.enter(descriptor)
    if not Path(namespace).exists():  # it was closed meanwhile: nobody would end us
        raise NetemError("the network is not up any more")
    try:
        os.execvp(command[0], command)  # noqa: S606  (no shell is wanted)
    except OSError as error:
        raise NetemError(f"{command[0]} cannot be started: {error.strerror}") from error


def main() -> None:
    """Run what the command line says; exit code 127 if it cannot be run, as shells do it."""
    namespace, parent, *command = sys.argv[1:]
    try:
        become(namespace, int(parent), command)
    except NetemError as error:
        sys.stderr.write(f"netem.enter: {error}\n")
        sys.exit(127)


if __name__ == "__main__":
    main()
