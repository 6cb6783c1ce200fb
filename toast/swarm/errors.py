"""What can go wrong between the viewer and the swarm."""

from toast.common.errors import ToastError, UsageError

__all__ = ["MetainfoError", "SwarmError"]


class SwarmError(ToastError):
    """The swarm side failed: a port is taken, the disk refuses, a tracker talks nonsense."""


class MetainfoError(UsageError):
    """A .torrent or a magnet link cannot be used."""
