"""The ways to emulate a network, each with a probe that tries it on this machine.

`choose` finds the one that can do all that a topology asks for. So far only `tun` runs topologies;
the others can be tried.
"""

from typing import Final

from netem.backends.base import Backend, BackendReport
from netem.backends.kernel import KernelBackend
from netem.backends.tun import TunBackend
from netem.backends.uml import UmlBackend
from netem.effects import asked_effects
from netem.errors import NetemError
from netem.topology import Topology

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendReport",
    "KernelBackend",
    "TunBackend",
    "UmlBackend",
    "choose",
]

BACKENDS: Final[tuple[Backend, ...]] = (KernelBackend(), UmlBackend(), TunBackend())
"""All of them, the most faithful and fastest first."""


def choose(
    topology: Topology,
    name: str | None = None,
    backends: tuple[Backend, ...] = BACKENDS,
    *,
    seed: int | None = None,
) -> Backend:
    """The first backend that can do everything that a topology asks for.

    It is not tried here: one that fails says so when the network is made.

    Args:
        topology: what shall run.
        name: take this one, or refuse; None for any.
        backends: to choose from.
        seed: of all chance, if it is given beside the topology.

    Raises:
        NetemError: there is none; the message names for each what it cannot do.
    """
    asked = asked_effects(topology, seed)
    refusals = []
    for backend in backends:
        if name in {None, backend.name}:
            if not backend.keeper:
                refusals.append(f"{backend.name} does not run topologies yet")
            elif lacking := asked - backend.effects:
                refusals.append(f"{backend.name} cannot do {' and '.join(sorted(lacking))}")
            else:
                return backend
    if not refusals:
        raise NetemError(
            f"there is no backend '{name}': known are {', '.join(b.name for b in backends)}"
        )
    raise NetemError(f"the network '{topology.name}' cannot be made: {'; '.join(refusals)}")
