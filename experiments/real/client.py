"""What a worker hosts: one client of a scenario, ours or a baseline, under one interface."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

import aiohttp
import numpy as np

from experiments.errors import ScenarioError
from experiments.swarms.result import ViewerRow
from experiments.swarms.scenario import Client, Scenario, SwarmViewer

__all__ = ["ClientContext", "LabClient", "create_client"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientContext:
    """All that a client of a scenario is given."""

    scenario: Scenario
    """What is carried out."""
    viewer: SwarmViewer
    """Which of its viewers this is."""
    source: str
    """URL of the film's title at the VoD server."""
    listen_host: str
    """The client's own address: it is reached there, and calls from there."""
    folder: Path
    """Where it may keep the film; not there yet. Whoever hosts the client removes it."""
    http: aiohttp.ClientSession
    """For server and tracker; calls from `listen_host`. Whoever hosts the client closes it."""
    began_at: float
    """The zero of the run, by the clock of the event loop."""
    rng: np.random.Generator
    """Chance of its own."""
    sha256: str | None = None
    """Of the film, hexadecimal, to compare with; None: not to be looked at."""
    film: Path | None = None
    """The film, on the file system of `folder`: complete copies may become links to it."""


class LabClient(Protocol):
    """One viewer of a run."""

    async def run(self) -> None:
        """Arrive now, watch until the behaviour's end or until `stop`, then leave the swarm.

        Raises:
            ToastError: the film cannot be watched.
        """

    def stop(self) -> None:
        """End the viewing; `run` returns soon after."""

    def seek(self, seconds: float) -> None:
        """Jump to a film time. Only our own client is asked to."""

    @property
    def position_seconds(self) -> float:
        """Film time of its playhead."""

    @property
    def has_played(self) -> bool:
        """Whether its playhead has reached the end of the film."""

    @property
    def received(self) -> tuple[int, int]:
        """Film bytes so far: (from other viewers, from anyone); for progress alone."""

    def row(self) -> ViewerRow:
        """What it came to, once `run` has ended."""


# By name, not by object: a worker loads only the client that it hosts.
_FACTORIES: Final[Mapping[Client, tuple[str, str]]] = {
    Client.TOAST: ("experiments.real.toast_client", "ToastClient"),
    Client.UNICAST: ("experiments.baselines", "create_baseline"),
    Client.WEB_SEED_SEQUENTIAL: ("experiments.baselines", "create_baseline"),
    Client.WEB_SEED_DEADLINES: ("experiments.baselines", "create_baseline"),
    Client.NAIVE: ("experiments.baselines", "create_baseline"),
}


def create_client(context: ClientContext) -> LabClient:
    """The client that the scenario names, on the running event loop; it has not arrived yet.

    Raises:
        ScenarioError: it cannot be had here.
    """
    kind = context.scenario.client
    module, name = _FACTORIES[kind]
    try:
        factory = getattr(import_module(module), name)
    except ImportError as error:
        raise ScenarioError(f"client: {kind} cannot be run here ({error})") from error
    return cast("Callable[[ClientContext], LabClient]", factory)(context)
