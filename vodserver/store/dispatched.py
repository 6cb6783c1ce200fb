"""Which replicas disks were told to read, in counts that all processes which serve have in common.

What is in the page cache is trusted once it was verified there. But the kernel may drop it, and a
read may bring it again, from a disk that has rotted meanwhile: for the milliseconds before that
read is judged, bytes that nobody verified lie where verified ones were. So every read of a replica
is counted before its disk hears of it, and whoever meets another count than it knew trusts nothing
of that replica any more before looking again.
"""

import mmap
import os
import zlib
from typing import Final, Self

from vodserver.store.disks import ExtentKey

__all__ = ["Dispatched"]

_SLOTS: Final = 1 << 16
_BYTES: Final = 4 * _SLOTS


class Dispatched:
    """Counts of reads, by replica.

    There are fewer counts than there may be replicas. Two that share one are verified once more
    than they need to be, and that is all.

    Args:
        fd: of counts that another process made and handed down; new ones if None.

    Attributes:
        fd: to hand down.
    """

    def __init__(self, fd: int | None = None) -> None:
        if fd is None:
            fd = os.memfd_create("vodserver reads", os.MFD_CLOEXEC)
            os.ftruncate(fd, _BYTES)
        self.fd = fd
        self._map = mmap.mmap(fd, _BYTES)
        self._counts = memoryview(self._map).cast("I")

    @staticmethod
    def slot(extent: ExtentKey, disk: int) -> int:
        """Where a replica is counted; the same in every process."""
        return zlib.crc32(f"{extent[0]}/{extent[1]}/{disk}".encode()) % _SLOTS

    def note(self, extent: ExtentKey, disk: int) -> None:
        """Count a read of a replica that is about to begin."""
        slot = self.slot(extent, disk)
        self._counts[slot] = (self._counts[slot] + 1) & 0xFFFFFFFF

    def count(self, slot: int) -> int:
        """How many reads were counted there, modulo 2^32."""
        return self._counts[slot]

    def close(self) -> None:
        """Let go of the counts."""
        self._counts.release()
        self._map.close()
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
