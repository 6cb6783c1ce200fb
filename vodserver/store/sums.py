"""Checksums of extents: xxh3-64 of every 64 KiB, so that no read need trust a disk."""

from typing import Final

import xxhash

__all__ = ["SUM_BYTES", "SUM_SPAN", "matches", "sums_of"]

SUM_SPAN: Final = 64 * 1024
"""Bytes under one checksum."""

SUM_BYTES: Final = 8
"""Bytes of one checksum."""


def sums_of(data: bytes | memoryview) -> bytes:
    """The checksums of an extent: 8 bytes, big-endian, for each 64 KiB from its start."""
    view = memoryview(data)
    return b"".join(
        xxhash.xxh3_64_digest(view[at : at + SUM_SPAN]) for at in range(0, len(view), SUM_SPAN)
    )


def matches(data: bytes | memoryview, offset: int, sums: bytes) -> bool:
    """Whether bytes read at an offset of an extent are what was written there.

    Args:
        data: what was read; whole spans, the extent's last one perhaps shorter.
        offset: where in the extent, a multiple of `SUM_SPAN`.
        sums: the checksums of the whole extent.
    """
    first = offset // SUM_SPAN * SUM_BYTES
    found = sums_of(data)
    return found == sums[first : first + len(found)]
