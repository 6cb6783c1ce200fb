"""What every way of emulating a network must be able to say about itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

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
    """One way of emulating a network."""

    @property
    def name(self) -> str:
        """Its name on the command line and in results."""

    @property
    def description(self) -> str:
        """What it is, in one line."""

    def probe(self) -> BackendReport:
        """Try it for real, and leave nothing behind. Takes seconds; never raises on a lack."""
