"""The kernel's own NetEm (tc-netem(8)), in network namespaces."""

import sys
from dataclasses import dataclass

from netem.backends.base import BackendReport
from netem.backends.process import run_trial_process
from netem.effects import Effect
from netem.errors import NetemError

__all__ = ["KernelBackend"]

_PATIENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class KernelBackend:
    """NetEm in the kernel that runs this program."""

    name: str = "kernel"
    description: str = "NetEm of the running kernel, in network namespaces"
    effects: frozenset[Effect] = frozenset()
    """It can be tried, and does not run topologies yet."""
    keeper: tuple[str, ...] = ()

    def probe(self) -> BackendReport:
        """Delay packets in a namespace that ends with the trial's process."""
        command = [sys.executable, "-m", "netem.backends.trial"]
        try:
            result = run_trial_process(command, seconds=_PATIENCE_SECONDS)
        except NetemError as error:
            return BackendReport(self.name, works=False, reason=str(error))
        works, reason = result.pop("works"), result.pop("reason")
        return BackendReport(self.name, works=works, reason=reason, facts=result)
