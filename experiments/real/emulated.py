"""An emulated network under a real run: the operator in one host, each viewer in one of its own.

The operator's machine is the topology's host `server`; the viewers are in the others, in the order
of the file. Whoever carries the run out moves to the operator's host, where it asks the programs
there what they have sent, without a packet on any link.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from experiments.errors import LabError, ScenarioError
from experiments.swarms.scenario import Scenario
from netem import namespaces
from netem.backends import Choice, choose
from netem.errors import NetemError
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology

__all__ = [
    "IN_A_GUEST",
    "OPERATOR_HOST",
    "Emulation",
    "Places",
    "emulation_for",
    "topology_of",
    "worker_command",
]

OPERATOR_HOST: Final = "server"
"""Where tracker and VoD server are."""
IN_A_GUEST: Final = "uml"
"""The backend whose hosts cannot be entered from this kernel."""
_WORKER: Final = ("-m", "experiments.real.worker")


def worker_command() -> list[str]:
    """What starts a worker."""
    return [sys.executable, *_WORKER]


@dataclass(frozen=True, slots=True)
class Places:
    """Where everyone is, while the network is up.

    Attributes:
        tracker_host: address of the tracker.
        server_host: address of the VoD server.
        viewer_hosts: address of each viewer, by number.
        workers: what starts the worker of each viewer, in its host.
        note: what a reader of the figures must know.
    """

    tracker_host: str
    server_host: str
    viewer_hosts: Sequence[str]
    workers: Sequence[list[str]]
    note: str

    def viewer_host(self, number: int) -> str:
        """Where a viewer is, numbered from 0."""
        return self.viewer_hosts[number]


@dataclass(frozen=True, slots=True)
class Emulation:
    """A network to carry runs out on.

    Attributes:
        topology: with a host `server`.
        choice: the backend; one whose hosts are in this kernel.
        congestion_control: TCP's in every host; None: the machine's default.

    Raises:
        ScenarioError: there is no host `server`.
    """

    topology: Topology
    choice: Choice
    congestion_control: str | None = None

    def __post_init__(self) -> None:
        if OPERATOR_HOST not in {host.name for host in self.topology.hosts}:
            raise ScenarioError(
                f"network: '{self.topology.name}' has no host '{OPERATOR_HOST}', in which VoD"
                " server and tracker could be"
            )

    @property
    def viewer_hosts(self) -> list[str]:
        """Hosts for viewers."""
        return [host.name for host in self.topology.hosts if host.name != OPERATOR_HOST]

    def check(self, scenario: Scenario) -> None:
        """Refuse a scenario that does not fit.

        Raises:
            ScenarioError: more viewers than hosts.
        """
        there = len(self.viewer_hosts)
        if scenario.viewers > there:
            raise ScenarioError(
                f"viewers is {scenario.viewers}, and the network '{self.topology.name}' has"
                f" {there} hosts beside '{OPERATOR_HOST}': each viewer needs one"
            )

    @asynccontextmanager
    async def up(self, scenario: Scenario) -> AsyncIterator[Places]:
        """Make the network, and be in the operator's host for as long as the block lasts.

        Raises:
            LabError: it cannot be made.
        """
        network = Network(
            self.topology,
            backend=self.choice.backend,
            seed=scenario.random_seed if self.topology.seed is not None else None,
            congestion_control=self.congestion_control,
        )
        try:
            async with network:
                hosts = self.viewer_hosts[: scenario.viewers]
                places = Places(
                    tracker_host=network.address(OPERATOR_HOST),
                    server_host=network.address(OPERATOR_HOST),
                    viewer_hosts=[network.address(host) for host in hosts],
                    workers=[network.command(host, worker_command()) for host in hosts],
                    note=self._note(network.facts),
                )
                with namespaces.leaving():
                    network.enter(OPERATOR_HOST)
                    yield places
        except NetemError as error:
            raise LabError(f"network: {error}") from error

    def _note(self, facts: dict[str, Any]) -> str:
        return (
            f"network: {self.topology.name}, by {facts['backend']} (Linux {facts['kernel']}),"
            f" congestion control {facts['congestion_control']}"
        )


def topology_of(scenario: Scenario) -> Topology | None:
    """The network of a scenario's latencies and losses: they meet all that each machine sends.

    Returns:
        It, with the hosts `server` and `viewer-0` onwards; None if there are neither.
    """
    if not scenario.needs_network:
        return None
    sends = [(viewer.link.latency_seconds, viewer.link.loss) for viewer in scenario.crowd()]
    server = (scenario.server_latency_seconds, scenario.server_loss)
    names = {path: f"path-{at}" for at, path in enumerate(sorted({server, *sends}))}
    return Topology(
        name=f"latencies of {scenario.name}",
        classes=tuple(
            LatencyClass(name, delay, loss=loss) for (delay, loss), name in names.items()
        ),
        hosts=(
            Host(OPERATOR_HOST, names[server]),
            *(Host(f"viewer-{number}", names[path]) for number, path in enumerate(sends)),
        ),
    )


def emulation_for(scenario: Scenario, given: Emulation | None) -> Emulation | None:
    """The network that a run needs; None if the machine's loopback will do.

    Args:
        scenario: what is carried out.
        given: a network that was asked for.

    Raises:
        ScenarioError: it cannot be had here, or does not fit.
    """
    own = topology_of(scenario)
    if given is not None:
        if own is not None:
            raise ScenarioError(
                "links.latency_seconds and links.loss must be 0 on a network that has its own"
            )
        if scenario.congestion_control:
            raise ScenarioError(
                "congestion_control: with a network, it is said by --congestion-control"
            )
        given.check(scenario)
        return given
    if own is None:
        if scenario.congestion_control:
            raise ScenarioError(
                "congestion_control is pinned on emulated networks: give links.latency_seconds, too"
            )
        return None
    try:
        choice = choose(own)
    except NetemError as error:
        raise ScenarioError(f"links.latency_seconds: {error}") from error
    if choice.backend.name == IN_A_GUEST:
        raise ScenarioError(
            f"links.latency_seconds: this machine can have that only in a guest ({choice.why}):"
            " put 'toast-netem guest --memory 4GB' before the command"
        )
    return Emulation(own, choice, scenario.congestion_control or None)
