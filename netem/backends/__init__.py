"""The ways to emulate a network, each with a probe that tries it on this machine.

`choose` finds the first that can do all that a topology asks for, here.
"""

from dataclasses import dataclass
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
    "Choice",
    "KernelBackend",
    "TunBackend",
    "UmlBackend",
    "choose",
]

BACKENDS: Final[tuple[Backend, ...]] = (KernelBackend(), TunBackend(), UmlBackend())
"""All of them, in the order in which they are taken.

NetEm itself comes first. In user-mode Linux it is as faithful, but every program in the hosts pays
with its speed; there `tun` is the better choice, as long as it can do what is asked.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, and why it is this one.

    Attributes:
        backend: it.
        why: in words; why not those before it.
    """

    backend: Backend
    why: str


def choose(
    topology: Topology,
    name: str | None = None,
    backends: tuple[Backend, ...] = BACKENDS,
    *,
    seed: int | None = None,
) -> Choice:
    """The first backend that can do everything that a topology asks for.

    Args:
        topology: what shall run.
        name: take this one, or refuse; None or "auto" for any.
        backends: to choose from.
        seed: of all chance, if it is given beside the topology.

    Raises:
        NetemError: there is none; the message names for each what it cannot do, or lacks here.
    """
    asked = asked_effects(topology, seed)
    refusals = []
    for backend in backends:
        if name in {None, "auto", backend.name}:
            if lacking := asked - backend.effects:
                refusals.append(f"{backend.name} cannot do {' and '.join(sorted(lacking))}")
            elif (missing := backend.missing()) is not None:
                refusals.append(f"{backend.name}: {missing}")
            else:
                how = "it was asked for" if name == backend.name else "it can do all that is asked"
                return Choice(backend, "; ".join([*refusals, f"{backend.name}: {how}"]))
    if not refusals:
        raise NetemError(
            f"there is no backend '{name}': known are {', '.join(b.name for b in backends)}"
        )
    raise NetemError(f"the network '{topology.name}' cannot be made: {'; '.join(refusals)}")
