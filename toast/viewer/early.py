"""Blocks from the origin whose piece is not complete yet: checked, and lent to readers, one by one.

A piece of an hour-long film takes longer to come than a picture may wait. The VoD server publishes
the SHA-256 of each 16 KiB block, and the .torrent holds the Merkle root of those of each piece (as
in BEP 52): so a block can be shown as soon as it is here. No I/O.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.viewer.errors import WrongBlock

__all__ = ["EarlyBlocks"]

_DIGEST_BYTES = 32


@dataclass(slots=True)
class _Part:
    data: bytearray
    filled: NDArray[np.int64]
    received: NDArray[np.bool_]
    verified: NDArray[np.bool_]
    leaves: bytes | None = None


class EarlyBlocks:
    """What the origin has sent of pieces that are not complete.

    Args:
        geometry: how the film is cut.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._parts: dict[int, _Part] = {}

    def add(self, piece: int, offset: int, data: bytes | memoryview) -> bool:
        """Take bytes of a piece, in order within each block.

        Args:
            piece: number of the piece.
            offset: of the first byte, within the piece.
            data: the bytes.

        Returns:
            Whether more of the piece can be read now.

        Raises:
            WrongBlock: a block is not the right one; it is forgotten.
        """
        part = self._part(piece)
        grown = False
        view = memoryview(data)
        while view:
            block, within = divmod(offset, BLOCK_BYTES)
            size = self._geometry.block_size(piece, block)
            taken = view[: size - within]
            if within == 0:
                part.filled[block] = 0
            if not part.received[block] and part.filled[block] == within:
                part.data[offset : offset + len(taken)] = taken
                part.filled[block] += len(taken)
                if part.filled[block] == size:
                    part.received[block] = True
                    grown |= self._check(part, piece, block)
            offset += len(taken)
            view = view[len(taken) :]
        return grown

    def expect(self, piece: int, leaves: bytes) -> bool:
        """Learn the SHA-256 of each block of a piece, itself already checked.

        Args:
            piece: number of the piece.
            leaves: 32 bytes per block.

        Returns:
            Whether more of the piece can be read now.

        Raises:
            WrongBlock: a block that came before is not the right one; it is forgotten.
        """
        part = self._part(piece)
        part.leaves = leaves
        grown = False
        wrong: WrongBlock | None = None
        for block in np.flatnonzero(part.received & ~part.verified).tolist():
            try:
                grown |= self._check(part, piece, block)
            except WrongBlock as error:
                wrong = error
        if wrong is not None:
            raise wrong
        return grown

    def knows(self, piece: int) -> bool:
        """Whether the hashes of a piece's blocks are known."""
        part = self._parts.get(piece)
        return part is not None and part.leaves is not None

    def received(self, piece: int) -> NDArray[np.bool_] | None:
        """bool[blocks], what came of a piece, checked or not; None if nothing."""
        part = self._parts.get(piece)
        return None if part is None else part.received.copy()

    def received_of(self, piece: int, blocks: Iterable[int]) -> list[int]:
        """Which of these blocks came, checked or not."""
        part = self._parts.get(piece)
        return [] if part is None else [block for block in blocks if part.received[block]]

    def verified(self) -> dict[int, NDArray[np.bool_]]:
        """bool[blocks] for each piece of which blocks can be read."""
        return {
            piece: part.verified.copy()
            for piece, part in self._parts.items()
            if part.verified.any()
        }

    def read(self, piece: int, offset: int, end: int) -> bytes:
        """Checked bytes from `offset` on (within the piece), up to `end` or the first gap."""
        part = self._parts.get(piece)
        if part is None:
            return b""
        stop = offset
        for block in range(offset // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
            if not part.verified[block]:
                break
            stop = block * BLOCK_BYTES + self._geometry.block_size(piece, block)
        return bytes(part.data[offset : min(stop, end)])

    def data(self, piece: int) -> bytes:
        """The whole piece; where nothing came there are zeros."""
        return bytes(self._part(piece).data)

    def drop(self, piece: int) -> None:
        """Forget a piece: it is complete, or what came of it is not to be trusted."""
        self._parts.pop(piece, None)

    def trim(self, most: int, keep: Collection[int]) -> None:
        """Forget the oldest pieces beyond `most` of those that are not to be kept."""
        idle = [piece for piece in self._parts if piece not in keep]
        for piece in idle[: max(0, len(idle) - most)]:
            del self._parts[piece]

    def __contains__(self, piece: int) -> bool:
        return piece in self._parts

    def _part(self, piece: int) -> _Part:
        part = self._parts.get(piece)
        if part is None:
            blocks = self._geometry.blocks_in(piece)
            part = self._parts[piece] = _Part(
                data=bytearray(self._geometry.piece_size(piece)),
                filled=np.zeros(blocks, dtype=np.int64),
                received=np.zeros(blocks, dtype=np.bool_),
                verified=np.zeros(blocks, dtype=np.bool_),
            )
        return part

    def _check(self, part: _Part, piece: int, block: int) -> bool:
        if part.leaves is None:
            return False
        start = block * BLOCK_BYTES
        size = self._geometry.block_size(piece, block)
        digest = hashlib.sha256(memoryview(part.data)[start : start + size]).digest()
        if digest != part.leaves[block * _DIGEST_BYTES : (block + 1) * _DIGEST_BYTES]:
            part.received[block] = False
            part.filled[block] = 0
            raise WrongBlock(f"block {block} of piece {piece}")
        part.verified[block] = True
        return True
