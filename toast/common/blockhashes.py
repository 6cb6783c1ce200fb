"""Hashes of a film's blocks, and the roots by which those are known to be the film's.

A torrent of version 1 (BEP 3) verifies whole pieces. Whoever has the hash of every 16 KiB block can
show a block as soon as it is there, and can tell which of several senders sent a bad one. So a
.torrent of ours carries one root for each piece, and names a place where the hashes themselves can
be had; they are verified against the roots, and need not be trusted.

The tree is that of BEP 52: SHA-256, leaves over 16 KiB each (the last one of the film perhaps over
less, and not padded), missing leaves 32 zero bytes. All pieces have trees of the same height, the
film's last piece too.

Pure.
"""

import hashlib
from typing import Final

from toast.common.errors import UsageError
from toast.common.geometry import BLOCK_BYTES, Geometry

__all__ = ["HASH_BYTES", "check", "leaves", "leaves_bytes", "leaves_span", "root"]

HASH_BYTES: Final = 32
"""Bytes of one SHA-256."""


def leaves(data: bytes | bytearray | memoryview) -> bytes:
    """The hashes of some bytes that begin where a block does, 32 bytes for each block."""
    view = memoryview(data)
    return b"".join(
        hashlib.sha256(view[at : at + BLOCK_BYTES]).digest()
        for at in range(0, len(view), BLOCK_BYTES)
    )


def root(hashes: bytes | memoryview, full_blocks: int) -> bytes:
    """The root of a piece.

    Args:
        hashes: of the piece's blocks, 32 bytes each.
        full_blocks: blocks in a piece that is not the film's last one.

    Raises:
        UsageError: there are no hashes, more than a piece has, or a part of one.
    """
    count, rest = divmod(len(hashes), HASH_BYTES)
    if rest or not 0 < count <= full_blocks:
        raise UsageError(f"{len(hashes)} bytes are not the hashes of a piece of {full_blocks}")
    level = bytes(hashes)
    empty = bytes(HASH_BYTES)  # the root of a tree without leaves, as high as this level
    for _ in range((full_blocks - 1).bit_length()):
        if len(level) % (2 * HASH_BYTES):
            level += empty
        level = b"".join(
            hashlib.sha256(level[at : at + 2 * HASH_BYTES]).digest()
            for at in range(0, len(level), 2 * HASH_BYTES)
        )
        empty = hashlib.sha256(empty + empty).digest()
    return level


def check(hashes: bytes | memoryview, expected: bytes, full_blocks: int) -> bool:
    """Whether these are the hashes of the piece that has this root; False for what is none."""
    try:
        return root(hashes, full_blocks) == expected
    except UsageError:
        return False


def leaves_bytes(film: Geometry) -> int:
    """Bytes of the hashes of a whole film."""
    return HASH_BYTES * -(-film.film_bytes // BLOCK_BYTES)


def leaves_span(film: Geometry, piece: int) -> tuple[int, int]:
    """Where among a film's hashes those of a piece are: first byte, and one past the last."""
    start = HASH_BYTES * (film.piece_start(piece) // BLOCK_BYTES)
    return start, start + HASH_BYTES * film.blocks_in(piece)
