"""The film in the simulator: blocks of a piece as the bits of a number, and when each is due."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.common.timemap import TimeMap

__all__ = ["Cut", "Part", "lowest"]


class Cut:
    """A film, cut into pieces and blocks.

    Args:
        timemap: when each byte is due.
        geometry: how it is cut.

    Attributes:
        pieces: how many.
        due: float64[P], film time at which each piece is needed first.
        until: float64[P], film time at which it is needed no more.
        order: the pieces by due time.
        place: of each piece in that order.
        startup: the pieces without which there is no first picture.
        whole: for each piece, the bits of all its blocks.
    """

    def __init__(self, timemap: TimeMap, geometry: Geometry) -> None:
        self.timemap = timemap
        self.geometry = geometry
        self.pieces = geometry.pieces
        self.due = timemap.due_of_pieces(geometry)
        self.until = timemap.until_of_pieces(geometry)
        order = np.argsort(self.due, kind="stable")
        self.order: list[int] = order.tolist()
        self.place: list[int] = np.argsort(order, kind="stable").tolist()
        self.due_list: list[float] = self.due.tolist()
        self.until_list: list[float] = self.until.tolist()
        self.is_monotone = bool((np.diff(self.until) >= 0).all() and (np.diff(self.due) >= 0).all())
        startup: dict[int, None] = {}
        for start, end in timemap.startup:
            startup.update(dict.fromkeys(geometry.pieces_of(start, end)))
        self.startup = list(startup)
        full = (1 << geometry.blocks_in(0)) - 1
        self.whole = [full] * self.pieces
        self.whole[-1] = (1 << geometry.blocks_in(self.pieces - 1)) - 1
        last = geometry.blocks_in(self.pieces - 1) - 1
        self._short = BLOCK_BYTES - geometry.block_size(self.pieces - 1, last)
        self._last_bit = 1 << last
        self._last = self.pieces - 1

    def size(self, piece: int, blocks: int) -> int:
        """Bytes in some blocks of a piece."""
        size = blocks.bit_count() * BLOCK_BYTES
        if piece == self._last and blocks & self._last_bit:
            size -= self._short
        return size

    def flags(self, piece: int, blocks: int) -> NDArray[np.bool_]:
        """bool[B]: some blocks of a piece, as the policies want them. Not to be written to."""
        return _flags(blocks, self.whole[piece].bit_length())


class Part:
    """A piece that is begun: which of its blocks are here, and which nobody was asked for.

    Args:
        whole: the bits of all of them.
    """

    __slots__ = ("got", "open")

    def __init__(self, whole: int) -> None:
        self.got = 0
        self.open = whole


@lru_cache(maxsize=1 << 14)
def _flags(blocks: int, count: int) -> NDArray[np.bool_]:
    data = np.frombuffer(blocks.to_bytes(-(-count // 8), "little"), dtype=np.uint8)
    flags = np.unpackbits(data, count=count, bitorder="little").astype(np.bool_)
    flags.flags.writeable = False
    return flags


def lowest(blocks: int, count: int) -> int:
    """The first so many of some blocks; all, if there are no more."""
    if blocks.bit_count() <= count:
        return blocks
    together = (blocks & -blocks) * ((1 << count) - 1)
    if blocks & together == together:
        return together
    taken = 0
    for _ in range(count):
        bit = blocks & -blocks
        taken |= bit
        blocks ^= bit
    return taken
