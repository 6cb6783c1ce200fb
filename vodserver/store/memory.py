"""What of the extents can go out at once: open here, in the kernel's memory, and verified.

The kernel's page cache is the only cache, and every process that serves can send from it. A part
of a replica is verified when it comes from the disk; it stays so while the kernel keeps it, and
has to be verified again after it was found to have gone, or after any read of that replica began.
"""

import resource
from collections import OrderedDict
from contextlib import suppress
from itertools import islice
from typing import Final

from vodserver.errors import DiskError
from vodserver.store.disks import ExtentKey
from vodserver.store.dispatched import Dispatched
from vodserver.store.files import OpenFile
from vodserver.store.rows import Extent
from vodserver.store.sums import SUM_SPAN, matches

__all__ = ["Memory", "raise_open_files_limit"]

_OPEN_FILES: Final = 4096
_HOLD_AFTER: Final = 32
"""A replica that was sent from so often is asked for much."""

_LARGEST_BYTES: Final = 64 << 20
"""To hold so much takes some 3 ms, and the event loop waits."""

_SHARE: Final = 4
"""One in so many of the files that may be open here, connections and all, is a replica."""


class _Entry:
    """A replica, and which of its spans are verified: one bit for each, the first the lowest."""

    __slots__ = ("asked", "file", "patience", "reads", "slot", "stamp", "verified", "whole")

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
        self.asked = 0
        """How often it was sent from since it was last thought of to hold it."""
        self.patience = _HOLD_AFTER
        """How often it has to be sent from before that."""


class Memory:
    """The replicas that this process has open, and which of their spans it knows to be right.

    Used from one thread.

    Those that are sent from most are held: the kernel may not take them away, and is asked no more
    whether it has. All else is as it is without.

    Args:
        dispatched: counts of the reads that disks were given.
        open_files: most replicas open at a time; the one that was used least recently goes. By
            default 4096, or a quarter of what this process may have open, if that is less.

    Attributes:
        most_held_bytes: so much may be held at a time.
        held_bytes: so much is.
    """

    def __init__(self, dispatched: Dispatched, open_files: int | None = None) -> None:
        self.most_held_bytes = 0
        self.held_bytes = 0
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
            self._changed(held, entry, stamp)
            if stamp is None:
                return None
        self._entries.move_to_end(held)
        # Nothing of what is held was ever away, so no read can have brought in anything else.
        if not file.held or stop > file.size:
            if not file.in_memory(begin, stop):
                entry.verified &= ~_bits(begin, stop)
                return None
            # Asked only now: what a read brought in since it was counted was not in memory before.
            if self._dispatched.count(entry.slot) != entry.reads:
                self._renew(entry)
        if entry.verified != entry.whole:
            return file if _verify(entry, begin, stop, extent) else None
        if self.most_held_bytes and not file.held:
            self._consider(entry)
        return file

    def _changed(self, held: tuple[ExtentKey, int], entry: _Entry, stamp: int | None) -> None:
        """Somebody wrote into a replica, or took it away: what was right may be so no more."""
        self._let_go(entry)
        entry.stamp = stamp
        entry.verified = 0
        if stamp is None:
            del self._entries[held]

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
            self.forget(key, disk)
            slot = self._dispatched.slot(key, disk)
            entry = _Entry(file, slot, self._dispatched.count(slot))
            self._entries[key, disk] = entry
            limit = self._limit()
            while len(self._entries) > limit:
                self._let_go(self._entries.popitem(last=False)[1])
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
        entry = self._entries.pop((key, disk), None)
        if entry is not None:
            self._let_go(entry)

    def forget_disk(self, disk: int) -> None:
        """Close all that lies on a disk: it is gone, and another may come under its number."""
        for key, number in list(self._entries):
            if number == disk:
                self.forget(key, number)

    def clear(self) -> None:
        """Close everything."""
        for entry in self._entries.values():
            self._let_go(entry)
        self._entries.clear()

    def _consider(self, entry: _Entry) -> None:
        """Hold a replica that is asked for much, if there is room or another is asked for less."""
        entry.asked += 1
        if entry.asked < entry.patience:
            return
        # Whom this does not help now is thought of ever more seldom.
        entry.asked, entry.patience = 0, 2 * entry.patience
        size = entry.file.size
        if size > min(self.most_held_bytes, _LARGEST_BYTES):
            return
        if self.held_bytes + size > self.most_held_bytes:
            # They stand in the order in which they were last used; the first half is used little.
            for other in islice(self._entries.values(), len(self._entries) // 2):
                self._let_go(other)
                if self.held_bytes + size <= self.most_held_bytes:
                    break
            else:
                return
        try:
            if entry.file.hold():
                self.held_bytes += size
        except OSError:  # no more is allowed (RLIMIT_MEMLOCK), or nothing at all
            self.most_held_bytes = self.held_bytes

    def _let_go(self, entry: _Entry) -> None:
        if entry.file.held:
            entry.file.let_go()
            self.held_bytes -= entry.file.size

    def _limit(self) -> int:
        if self._most is not None:
            return self._most
        # Asked for anew: a program may raise it after the store was opened.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return _OPEN_FILES if soft < 0 else max(min(_OPEN_FILES, soft // _SHARE), 1)


def _verify(entry: _Entry, begin: int, stop: int, extent: Extent) -> bool:
    """Whether bytes [begin, stop), which are in memory, are right; False also if they have gone.

    Raises:
        DiskError: they are not what was written.
    """
    bits = _bits(begin, stop)
    if entry.verified & bits != bits:
        low, high = _spans(begin, stop, extent.size)
        data = entry.file.read_now(low, high)
        if data is None:
            return False
        if not matches(data, low, extent.sums):
            raise DiskError("its checksum does not match")
        entry.verified |= bits
    return True


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
