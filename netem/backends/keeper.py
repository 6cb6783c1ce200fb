"""What every keeper of a network does: reads what to make, makes it, says so, and ends it.

Reads a `NetworkSpec` as one line from standard input, and speaks as `netem.backends.base` says.
When this process ends, in whatever way, there are no namespaces, links and devices any more: all
are nothing but its open files. Processes in the hosts are ended by it; by the kernel, if they were
started by `Network` and it has ended, too; and by the next keeper, if nobody else was left to.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol

from netem import namespaces, stale
from netem.awake import processors_awake
from netem.errors import NetemError
from netem.spec import NetworkSpec

__all__ = ["Running", "keep", "read_spec", "say"]

_LONGEST_SPEC: Final = 16 * 1024 * 1024


class Running(Protocol):
    """A network that was made."""

    @property
    def facts(self) -> dict[str, Any]:
        """What a result made with it should record."""

    def run(self) -> None:
        """Keep it running until its lifeline ends, or an exception (a signal's) comes."""

    def report(self) -> dict[str, Any]:
        """What it counted."""


def keep(make: Callable[[NetworkSpec, dict[str, int]], Running]) -> None:
    """Keep a network until standard input ends or a signal comes.

    Args:
        make: makes it; puts each namespace that it makes into the dictionary at once, by the
            host's name.
    """
    try:
        line = read_spec()
        say({"event": "keeper", "pid": os.getpid(), "spec": json.loads(line)})
        stale.sweep()
        with processors_awake() as awake:
            _keep(NetworkSpec.from_json(line), make, awake=awake)
    except NetemError as error:
        say({"event": "failed", "reason": str(error)})
        sys.exit(error.exit_code)


def read_spec() -> str:
    """The line that describes the network.

    Raises:
        NetemError: it does not come.
    """
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65_536)
        if not part or len(line) > _LONGEST_SPEC:
            raise NetemError(
                "the network's description did not come: this program is not for people"
            )
        line += part
    return line.decode()


def say(value: dict[str, Any]) -> None:
    """Tell whoever started us, if that is still there."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


def _keep(
    spec: NetworkSpec, make: Callable[[NetworkSpec, dict[str, int]], Running], *, awake: bool
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _asked_to_end)
    began = time.monotonic()
    made: dict[str, int] = {}
    network = None
    try:
        network = make(spec, made)
        say(
            {
                "event": "up",
                "hosts": {
                    name: {"address": address, "enter": _entrance(made[name])}
                    for name, address in spec.addresses().items()
                },
                **network.facts,
                "awake": awake,
                "up_seconds": round(time.monotonic() - began, 4),
            }
        )
        network.run()
    except SystemExit:
        if network is None:
            raise NetemError("stopped before it was up") from None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        ended = namespaces.end_processes_in(made.values())
    times = os.times()
    report = {"event": "report", "ended_processes": ended, **network.report()}
    report["cpu_seconds"] = round(times.user + times.system, 3)
    report["seconds"] = round(time.monotonic() - began, 3)
    say(report)


def _entrance(namespace: int) -> list[str]:
    return [sys.executable, "-m", "netem.enter", f"/proc/{os.getpid()}/fd/{namespace}"]


def _asked_to_end(_number: int, _frame: object) -> NoReturn:
    raise SystemExit
