"""What every way of emulating a network must be able to say about itself, and to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from netem.effects import Effect

__all__ = ["Backend", "BackendReport"]


@dataclass(frozen=True, slots=True)
class BackendReport:
    """Whether a backend works on this machine, tried and not guessed.

    Attributes:
        name: the backend.
        works: it did what it must be able to do.
        reason: what was seen if it works, why not and what would help if it does not; one line.
        facts: what a result made with it should record, such as the kernel that did the delaying.
    """

    name: str
    works: bool
    reason: str
    facts: Mapping[str, str | float] = field(default_factory=dict)


class Backend(Protocol):
    """One way of emulating a network.

    A network that runs is one process, its *keeper*: it reads a `NetworkSpec` as a line of JSON
    from its standard input, and prints one JSON object per line with an `event`:

    - `keeper`: first of all; its `pid`, and the `spec` that it was given.
    - `up`: every host works. `hosts` has for each its `address`, and `enter`: a command to which
      the id of the process to end with (0 for none) and a command are added, to run that in the
      host. Also `congestion_control`.
    - `failed`: it cannot be made; `reason` says why, in one line.
    - `report`: its last words; `cpu_seconds` and what it counted.

    It ends on SIGTERM, and if the spec says so when its standard input ends. With it ends all that
    it made and every process in its hosts.
    """

    @property
    def name(self) -> str:
        """Its name on the command line and in results."""

    @property
    def description(self) -> str:
        """What it is, in one line."""

    @property
    def effects(self) -> frozenset[Effect]:
        """What it can do to packets."""

    @property
    def keeper(self) -> tuple[str, ...]:
        """The command that keeps a network."""

    def missing(self) -> str | None:
        """What it lacks on this machine and how to get it; None if nothing. Takes a moment."""

    def probe(self) -> BackendReport:
        """Try it for real, and leave nothing behind. Takes seconds; never raises on a lack."""
