"""Servers and loads as processes: pinned to cores, weighed, and ended whatever happens."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from toast.common.errors import ToastError

__all__ = ["BenchError", "Program", "free_port", "on_cores", "running", "wait_listening"]

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_GRACE_SECONDS = 5.0
_START_SECONDS = 30.0


class BenchError(ToastError):
    """The comparison cannot be made as asked."""


class Program:
    """One running server. Made by `running`."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self._log = log

    def cpu_seconds(self) -> float:
        """What it and its descendants have computed so far, in user and kernel mode (proc(5))."""
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text()
                except OSError:
                    continue  # it has ended meanwhile
                fields = stat[stat.rindex(")") + 2 :].split()
                parents[int(entry.name)] = int(fields[1])
                ticks[int(entry.name)] = int(fields[11]) + int(fields[12])
        family = {self.process.pid}
        while grown := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= grown
        return sum(ticks.get(pid, 0) for pid in family) / _TICKS_PER_SECOND

    def check(self) -> None:
        """See that it still runs.

        Raises:
            BenchError: it has ended; the message has its last words.
        """
        if self.process.poll() is not None:
            words = self._log.read_text(errors="replace").split("\n")
            last = next((line for line in reversed(words) if line.strip()), "it said nothing")
            raise BenchError(f"{self.name} ended with code {self.process.returncode}: {last}")


def on_cores(cores: Sequence[int], command: Sequence[str]) -> list[str]:
    """A command that runs on these cores only, and is ended when we are killed ourselves."""
    listed = ",".join(map(str, cores))
    return ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", listed, *command]


@contextmanager
def running(
    name: str, command: Sequence[str], *, cores: Sequence[int], log: Path
) -> Iterator[Program]:
    """Run a server on some cores while the block lasts.

    It has a process group of its own, so that Ctrl-C reaches us alone.

    Raises:
        BenchError: it cannot be started.
    """
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                on_cores(cores, command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise BenchError(f"{name} cannot be started: {error.strerror}") from error
    try:
        yield Program(name, process, log)
    finally:
        _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    try:
        if process.poll() is None:
            process.terminate()
            process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Also its children; the group is gone, and its number is no one's, if nobody is left in it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_listening(program: Program, port: int) -> None:
    """Wait until a server takes connections.

    Raises:
        BenchError: it ended, or does not do so in time.
    """
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        program.check()
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise BenchError(f"{program.name} takes no connections on port {port}")
