"""Who gave what of a film: blocks told of by libtorrent, credited when their piece is right."""

from collections import Counter
from enum import Enum

from toast.common.geometry import Geometry

__all__ = ["Credits", "Giver"]


class Giver(Enum):
    """From whom a block came."""

    PEER = "peer"
    SEED = "seed"
    ORIGIN = "origin"


class Credits:
    """Film bytes by giver, in pieces that are complete and right.

    libtorrent may tell of a piece's last blocks after the piece, or never: those count for whoever
    was asked for them last.

    Args:
        geometry: of the film.

    Attributes:
        bytes_of: what each gave.
    """

    def __init__(self, geometry: Geometry) -> None:
        self.bytes_of: Counter[Giver] = Counter()
        self._geometry = geometry
        self._asked: dict[int, dict[int, Giver]] = {}
        self._came: dict[int, dict[int, Giver]] = {}

    def asked(self, piece: int, block: int, giver: Giver) -> None:
        """Somebody was asked for a block, or it was put in its place without being asked for."""
        self._asked.setdefault(piece, {})[block] = giver

    def came(self, piece: int, block: int, giver: Giver) -> None:
        """A block is here."""
        self._came.setdefault(piece, {}).setdefault(block, giver)

    def came_from_swarm(self, piece: int) -> frozenset[int]:
        """The blocks of an unfinished piece that peers or the seed have brought."""
        came = self._came.get(piece, {})
        return frozenset(block for block, giver in came.items() if giver is not Giver.ORIGIN)

    def done(self, piece: int) -> None:
        """A piece is complete and right."""
        asked, came = self._asked.pop(piece, {}), self._came.pop(piece, {})
        for block, giver in (asked | came).items():
            self.bytes_of[giver] += self._geometry.block_size(piece, block)

    def lost(self, piece: int) -> None:
        """A piece was wrong, and thrown away."""
        self._asked.pop(piece, None)
        self._came.pop(piece, None)
