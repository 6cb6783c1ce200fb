"""The kernel's own NetEm (tc-netem(8)), in network namespaces."""

import os
import sys
import threading
from dataclasses import dataclass

from netem import namespaces
from netem.backends.base import BackendReport
from netem.backends.process import run_trial_process
from netem.backends.qdisc import Shaping
from netem.effects import Effect
from netem.errors import NetemError
from netem.topology import LatencyClass

__all__ = ["KERNEL_EFFECTS", "KernelBackend"]

_PATIENCE_SECONDS = 15.0
_LOOPBACK_INDEX = 1

KERNEL_EFFECTS: frozenset[Effect] = frozenset(Effect) - {Effect.SEED, Effect.CORRELATION}
"""NetEm takes a seed only since Linux 6.6, and with it promises no fate to each packet. It takes a
correlation, but what it does with it has no effect (see `netem.shaper`)."""


@dataclass(frozen=True, slots=True)
class KernelBackend:
    """NetEm in the kernel that runs this program."""

    name: str = "kernel"
    description: str = "NetEm of the running kernel, in network namespaces"
    effects: frozenset[Effect] = KERNEL_EFFECTS
    keeper: tuple[str, ...] = (sys.executable, "-m", "netem.backends.kernel_keeper")

    def missing(self) -> str | None:
        """Whether this kernel takes a netem queueing discipline, tried in a namespace."""
        if os.geteuid():
            return "making network namespaces needs root: run it with sudo"
        found: list[str | None] = []
        # In a thread of its own, which ends in the namespace that it made.
        trying = threading.Thread(target=lambda: found.append(_try_netem()))
        trying.start()
        trying.join()
        return found[0]

    def probe(self) -> BackendReport:
        """Delay packets in a namespace that ends with the trial's process."""
        command = [sys.executable, "-m", "netem.backends.trial"]
        try:
            result = run_trial_process(command, seconds=_PATIENCE_SECONDS)
        except NetemError as error:
            return BackendReport(self.name, works=False, reason=str(error))
        works, reason = result.pop("works"), result.pop("reason")
        return BackendReport(self.name, works=works, reason=reason, facts=result)


def _try_netem() -> str | None:
    try:
        os.close(namespaces.make())
        with Shaping() as shaping:
            shaping.shape(_LOOPBACK_INDEX, LatencyClass("trial", 0.001), rate=1e6)
    except NetemError as error:
        return str(error)
    return None
