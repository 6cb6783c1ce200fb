"""Everything that can be set about watching one film."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from toast.policy.budget import BudgetSettings
from toast.policy.viewing import ViewingSettings
from toast.viewer.attendance import Pace

__all__ = ["Behaviour", "ViewerSettings"]


class Behaviour(StrEnum):
    """How long a viewer serves others (spec of the source, section 5.2)."""

    DOWNLOAD_ONLY = "download-only"
    """Leaves the swarm as soon as it has every piece; plays on from its own disk."""
    STREAMING = "streaming"
    """Serves others until its playhead reaches the end."""
    SEEDING = "seeding"
    """Serves others until it is told to stop."""


@dataclass(frozen=True, slots=True)
class ViewerSettings:
    """How one film is watched. Rates in bytes per second, times in seconds."""

    folder: Path = field(default_factory=lambda: Path("toast-films"))
    """Where films are kept; a film found there is checked and resumed."""
    behaviour: Behaviour = Behaviour.STREAMING
    """When the viewer leaves the swarm."""
    picker: str = "hybrid"
    """The piece picker, by name."""
    picker_options: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters."""
    horizon: str = "transfer"
    """The rule that gives pieces up, by name."""
    horizon_options: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters."""
    neighbours: str = "ahead"
    """Whom to connect to, by name."""
    neighbours_options: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters."""
    buffer_bytes: int | None = None
    """Most of the film that is kept on disk; None: all of it."""
    buffer_fraction: float | None = None
    """The same as a fraction of the film, for instance 0.25; None: all of it."""
    back_seconds: float = 30.0
    """What was played so lately is kept for a step back, in a quarter of the buffer at most."""
    start_seconds: float = 0.0
    """Film time at which to begin."""
    viewing: ViewingSettings = field(default_factory=ViewingSettings)
    """How the policies are put together."""
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    """What may be taken from the VoD server."""
    refresh_seconds: float = 1.0
    """Longest time between two looks at the swarm; events are acted on at once."""
    rest_seconds: float = 2.0
    """The same once the film is complete, when nothing needs to be decided."""
    stuck_seconds: float = 3.0
    """A piece that was injected and neither verified nor refused by then is opened again."""
    reader_jump_seconds: float = 5.0
    """A reader that opens the film further than this from the playhead is taken as a seek."""
    reader_lead_seconds: float = 2.0
    """How far ahead of its picture a player wants to have the film; 0 with the pace of a clock."""
    abandon_seconds: float = 60.0
    """What the server sends is broken off once it is due later than this: after a seek."""
    pace: Pace = Pace.CLOCK
    """What moves the playhead: time alone, or those who read through the gateway."""
