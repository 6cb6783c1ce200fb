"""Every setting of the seed."""

from dataclasses import dataclass

__all__ = ["SeedSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSettings:
    """How the seed behaves; `ServeSettings` has the defaults of what has none here."""

    host: str
    """IP address to listen on."""
    port: int
    """TCP port; 0 takes any free one."""
    upload: float | None
    """Most that is sent, bytes per second, protocol included, also on loopback; None: no limit."""
    connections: int
    """Most peers connected at a time."""
    trackers: tuple[str, ...]
    """Announce URLs, best first."""

    offer_seconds: float = 20.0
    """A title whose verification takes longer is offered in part after this time, again after
    twice as long, and so on: each time its peers connect anew, so there are few such times."""
    watch_seconds: float = 1.0
    """Between two looks at the disks, at the files on offer, and at peers that wait in vain."""
    pass_seconds: float = 30.0
    """Between two passes that take extents off disks that are loaded, or to be emptied."""
    pass_moves: int = 32
    """Most extents that one pass moves to another replica."""
    open_files: int = 8192
    """Most extents that are kept open, so that their files may be deleted and are still read. The
    process's limit may allow fewer; the others are opened when a peer asks."""
    verifications: int = 4
    """Extents under verification at a time, so that several disks are busy."""
