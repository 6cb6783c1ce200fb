"""Carrying a scenario out on an emulated network: here, or in a guest whose kernel can do it."""

import sys
from pathlib import Path
from typing import Final

from experiments.errors import LabError
from experiments.processes import program
from experiments.real.emulated import IN_A_GUEST, Emulation
from experiments.real.engine import RealEngine
from netem.backends import choose
from netem.errors import NetemError
from netem.guest.run import run_in_guest
from netem.topology_file import read_topology

__all__ = ["engine_on"]

_BASE_BYTES: Final = 768 << 20
_PATIENCE_SECONDS: Final = 300.0
"""A guest on a busy machine is slow, and not stuck."""
_HOST_BYTES: Final = 96 << 20
"""A viewer's program; its film is in that memory, too."""


def engine_on(file: Path, backend: str | None, congestion_control: str | None) -> RealEngine:
    """The real engine on the network of a topology file.

    If that can only be had in a user-mode Linux guest, this command is run again in one, and this
    process ends with it.

    Raises:
        LabError: the network cannot be made here; or the topology does not fit.
    """
    try:
        topology = read_topology(file)
        choice = choose(topology, backend)
        if choice.backend.name == IN_A_GUEST:
            memory = _BASE_BYTES + _HOST_BYTES * len(topology.hosts)
            words = [program("toast-lab"), *sys.argv[1:], "--backend", "kernel"]
            sys.stderr.write(f"in a guest: {choice.why}\n")
            sys.exit(run_in_guest(words, memory))
    except NetemError as error:
        raise LabError(f"network: {error}") from error
    emulation = Emulation(topology, choice, congestion_control)
    return RealEngine(emulation=emulation, patience_seconds=_PATIENCE_SECONDS)
