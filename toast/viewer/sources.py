"""Where a piece came from."""

from enum import IntEnum

__all__ = ["PieceSource"]


class PieceSource(IntEnum):
    """Who supplied most of a piece; the codes that piece maps are made of (uint8)."""

    MISSING = 0
    """Not here, and it never was."""
    PEERS = 1
    """Other viewers."""
    SEED = 2
    """The operator's seed."""
    ORIGIN = 3
    """The VoD server, over HTTP."""
    EJECTED = 4
    """It was here, and made room for others."""
    DISK = 5
    """Found on disk at the start."""
