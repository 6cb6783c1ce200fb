"""What of the extents can go out at once: open here, in the kernel's memory, and verified.

The kernel's page cache is the only cache, and every process that serves can send from it. A part
of a replica is verified when it comes from the disk; it stays so while the kernel keeps it, and
has to be verified again after it was found to have gone, or after any read of that replica began.
"""

import resource
from collections import OrderedDict
from contextlib import suppress
from typing import Final

from vodserver.errors import DiskError
from vodserver.store.disks import ExtentKey
from vodserver.store.dispatched import Dispatched
from vodserver.store.files import OpenFile
from vodserver.store.rows import Extent
from vodserver.store.sums import SUM_SPAN, matches

__all__ = ["Memory", "raise_open_files_limit"]

_OPEN_FILES: Final = 4096
_SHARE: Final = 4
"""One in so many of the files that may be open here, connections and all, is a replica."""


class _Entry:
    """A replica, and which of its spans are verified: one bit for each, the first the lowest."""

    __slots__ = ("file", "reads", "slot", "stamp", "verified", "whole")

    def __init__(self, file: OpenFile, slot: int, reads: int) -> None:
        self.file = file
        self.whole = _bits(0, file.size)
        """What is verified when all of it is."""
        self.slot = slot
        self.reads = reads
        """How many reads of it were dispatched when what is verified was verified."""
        self.verified = 0
        self.stamp: int | None = file.opened_stamp
        """When the file had been changed last, before what is verified was verified."""


class Memory:
    """The replicas that this process has open, and which of their spans it knows to be right.

    Used from one thread.

    Args:
        dispatched: counts of the reads that disks were given.
        open_files: most replicas open at a time; the one that was used least recently goes. By
            default 4096, or a quarter of what this process may have open, if that is less.
    """

    def __init__(self, dispatched: Dispatched, open_files: int | None = None) -> None:
        self._dispatched = dispatched
        self._most = open_files
        self._entries: OrderedDict[tuple[ExtentKey, int], _Entry] = OrderedDict()

    def ready(
        self, key: ExtentKey, disk: int, begin: int, stop: int, extent: Extent
    ) -> OpenFile | None:
        """The open replica if bytes [begin, stop) of it are in memory and verified.

        Never waits for a disk. What is in memory but was never verified here is verified now.

        Args:
            key: the extent's name.
            disk: whose replica.
            begin: first byte.
            stop: one past the last.
            extent: its size and checksums.

        Raises:
            DiskError: what is in memory is not what was written.
        """
        held = (key, disk)
        entry = self._entries.get(held)
        if entry is None:
            return None
        file = entry.file
        stamp = file.stamp()
        if stamp != entry.stamp:
            if stamp is None:
                del self._entries[held]
                return None
            # Somebody wrote into the file: what was right in memory may be so no more.
            entry.stamp = stamp
            entry.verified = 0
        self._entries.move_to_end(held)
        if not file.in_memory(begin, stop):
            entry.verified &= ~_bits(begin, stop)
            return None
        # Asked only now: what a read brought in since it was counted was not seen in memory before.
        if self._dispatched.count(entry.slot) != entry.reads:
            self._renew(entry)
        if entry.verified != entry.whole:
            bits = _bits(begin, stop)
            if entry.verified & bits != bits:
                low, high = _spans(begin, stop, extent.size)
                data = file.read_now(low, high)
                if data is None:
                    return None
                if not matches(data, low, extent.sums):
                    raise DiskError("its checksum does not match")
                entry.verified |= bits
        return file

    def learn(
        self, key: ExtentKey, disk: int, low: int, high: int, file: OpenFile | None = None
    ) -> None:
        """Note that bytes [low, high), whole spans, have just come from the disk and are right.

        Args:
            key: the extent.
            disk: whose replica.
            low: first byte.
            high: one past the last.
            file: the replica, opened; needed where it is not open here yet.
        """
        if file is not None and file.is_gone():
            return  # it was changed while it was read: nobody knows which of the two is verified
        entry = self._entries.get((key, disk))
        if entry is None or (file is not None and entry.file is not file and entry.file.is_gone()):
            if file is None:
                return
            slot = self._dispatched.slot(key, disk)
            entry = _Entry(file, slot, self._dispatched.count(slot))
            self._entries[key, disk] = entry
            limit = self._limit()
            while len(self._entries) > limit:
                self._entries.popitem(last=False)
        self._renew(entry)
        entry.verified |= _bits(low, high)

    def _renew(self, entry: _Entry) -> None:
        """Trust nothing of a replica that a disk was told to read since it was verified."""
        reads = self._dispatched.count(entry.slot)
        if reads != entry.reads:
            entry.reads = reads
            entry.verified = 0

    def has(self, key: ExtentKey, disk: int) -> bool:
        """Whether the replica is open here."""
        return (key, disk) in self._entries

    def forget(self, key: ExtentKey, disk: int) -> None:
        """Close a replica here: it is bad, or it has moved."""
        self._entries.pop((key, disk), None)

    def forget_disk(self, disk: int) -> None:
        """Close all that lies on a disk: it is gone, and another may come under its number."""
        for held in [held for held in self._entries if held[1] == disk]:
            del self._entries[held]

    def clear(self) -> None:
        """Close everything."""
        self._entries.clear()

    def _limit(self) -> int:
        if self._most is not None:
            return self._most
        # Asked for anew: a program may raise it after the store was opened.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return _OPEN_FILES if soft < 0 else max(min(_OPEN_FILES, soft // _SHARE), 1)


def _bits(begin: int, stop: int) -> int:
    """The bits of the spans that bytes [begin, stop) touch."""
    first = begin // SUM_SPAN
    return ((1 << (-(-stop // SUM_SPAN) - first)) - 1) << first


def _spans(begin: int, stop: int, size: int) -> tuple[int, int]:
    """The whole spans that bytes [begin, stop) of an extent touch."""
    return begin // SUM_SPAN * SUM_SPAN, min(-(-stop // SUM_SPAN) * SUM_SPAN, size)


def raise_open_files_limit() -> None:
    """Let this process have as many files and connections open as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < hard):
        # Where no limit is set the kernel has one of its own and may refuse: then it stays.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
