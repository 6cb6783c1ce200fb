"""The ways to emulate a network, each with a probe that tries it on this machine.

So far they can be tried, not yet used to run a topology.
"""

from typing import Final

from netem.backends.base import Backend, BackendReport
from netem.backends.kernel import KernelBackend
from netem.backends.tun import TunBackend
from netem.backends.uml import UmlBackend

__all__ = ["BACKENDS", "Backend", "BackendReport", "KernelBackend", "TunBackend", "UmlBackend"]

BACKENDS: Final[tuple[Backend, ...]] = (KernelBackend(), UmlBackend(), TunBackend())
"""All of them, the most faithful and fastest first."""
