"""Everything that can be set about the daemon."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toast.daemon.errors import RequestError
from toast.daemon.schedule import Schedule
from toast.viewer import Behaviour

__all__ = ["DaemonSettings", "RuleSettings", "change_rules", "default_state"]


def default_state() -> Path:
    """Where state belongs by the XDG Base Directory Specification, or where systemd says."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "toast"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """Where the daemon lives, and what it accepts at most. Fixed while it runs."""

    state: Path
    """Folder of what it remembers: films, positions, counters, its token."""
    films: Path | None = None
    """Folder in which each film gets a folder; none: `films` in the state folder."""
    watch: Path | None = None
    """Folder in which .torrents are looked for: each becomes a film; none: not done."""
    host: str = "127.0.0.1"
    """IP address to listen on; another than loopback lets other machines in, with the token."""
    port: int = 9117
    """Port of page, films and API; 0 takes any free one."""
    most_films: int = 500
    """Films that are kept at most; more are refused."""
    most_connections: int = 128
    """HTTP connections at a time; further ones are closed at once."""
    most_subscribers: int = 16
    """Event streams at a time; further ones are refused."""
    refresh_seconds: float = 1.0
    """How often films are looked at while something goes on; events are sent this often at most."""
    idle_refresh_seconds: float = 5.0
    """The same while all films rest and nobody looks."""
    linger_seconds: float = 30.0
    """How long a film counts as watched after its last reader left."""
    keep_seconds: float = 5.0
    """Resume positions and counters are written this often at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """What may be changed while the daemon runs, and is remembered. Rates in bytes per second."""

    most_active: int = 3
    """Films that are downloaded at a time; those being watched come on top."""
    behaviour: str = str(Behaviour.SEEDING)
    """How long a film is served to others, unless it was added with another one."""
    seed_ratio: float | None = None
    """Seeding ends when this many times the film was sent; none: no limit."""
    seed_seconds: float | None = None
    """Seeding ends after this long; none: no limit."""
    upload_rate: float | None = None
    """Most that is sent to peers, over all films; none: no limit."""
    download_rate: float | None = None
    """Most that is received from peers, over all films; none: no limit."""
    upload_day_bytes: int | None = None
    """Most that is sent to peers in a day of local time; none: no limit."""
    origin_day_bytes: int | None = None
    """Most that VoD servers are asked for in any 24 hours; none: no limit."""
    origin_rate: float | None = None
    """Most that VoD servers are asked for on average, over all films; none: no limit."""
    disk_bytes: int | None = None
    """Most that all films together may take; none: as much as the disk has."""
    eject_watched: bool = True
    """Whether films that are complete and watched go, oldest first, when room is needed."""
    schedule: str = ""
    """When rates are others; such as `22:00-07:00 full, otherwise upload 1Mbps`."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense, however it came.

        Raises:
            RequestError: with the setting's name.
        """
        _at_least("most_active", self.most_active, 0)
        for name in ("seed_ratio", "seed_seconds", "upload_day_bytes", "origin_day_bytes"):
            _at_least(name, getattr(self, name), 0)
        for name in ("upload_rate", "download_rate", "origin_rate", "disk_bytes"):
            _at_least(name, getattr(self, name), 1)
        if self.behaviour not in set(Behaviour):
            raise RequestError(f"behaviour must be one of {', '.join(Behaviour)}")
        Schedule.parse(self.schedule)


def _at_least(name: str, value: float | None, least: float) -> None:
    if value is not None and not least <= value < 2**63:
        raise RequestError(f"{name} must be at least {least:g}")


_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "int | None": ((int, type(None)), "a whole number or null"),
    "float | None": ((int, float, type(None)), "a number or null"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "text"),
}


def change_rules(rules: RuleSettings, changes: Mapping[str, Any]) -> RuleSettings:
    """The rules with some of them changed.

    Args:
        rules: as they are.
        changes: new values by name, as JSON has them.

    Raises:
        RequestError: an unknown name, or a value of the wrong kind or size.
    """
    kinds = {
        each.name: each.type.__name__ if isinstance(each.type, type) else str(each.type)
        for each in dataclasses.fields(RuleSettings)
    }
    for name, value in changes.items():
        if name not in kinds:
            raise RequestError(f"there is no setting '{name[:40]}'; there are {', '.join(kinds)}")
        types, words = _KINDS[kinds[name]]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise RequestError(f"{name} must be {words}")
    return dataclasses.replace(rules, **changes)
