"""What of a film can be sent at once, without asking a disk: the same in every process that serves.

Whether bytes are right is never taken from here on trust: `Memory` has verified every one of them.
What is kept here only says where to look first.
"""

from collections.abc import Callable
from typing import NamedTuple

from vodserver.errors import DiskError
from vodserver.store.disks import Disk, ExtentKey
from vodserver.store.files import OpenFile
from vodserver.store.memory import Memory
from vodserver.store.rows import Extent, Title

__all__ = ["Ready", "Resident", "part_of"]


class Ready(NamedTuple):
    """A part of a film that can be sent now, verified.

    Attributes:
        file: the open replica, for sendfile(2); None where the bytes are in `view`.
        offset: where in the file the part begins.
        size: bytes of it.
        disk: number of the disk that it lies on.
        view: its bytes, where there is no file to send from.
    """

    file: OpenFile | None
    offset: int
    size: int
    disk: int
    view: memoryview | None = None


def part_of(title: Title, at: int, end: int) -> tuple[Extent, int, int]:
    """The extent that holds byte `at`, and which bytes of it reach up to `end` at most."""
    extent = title.extents[at // title.extent_bytes]
    first = extent.number * title.extent_bytes
    return extent, at - first, min(end - first, extent.size)


class Resident:
    """Finds replicas that are in memory.

    Args:
        memory: those that are open, and what of them is verified. Who takes a disk away has it
            forget what lies there.
        disk: one of the disks; None if it is not there.
        fault: called with extent, disk number and what is wrong when a replica in memory is not
            what was written.

    Attributes:
        bad: replicas known to be bad: folder, extent number, disk number.
        sources: the disk that an extent was last read from.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        disk: Callable[[int], Disk | None],
        fault: Callable[[ExtentKey, int, str], None],
    ) -> None:
        self.bad: set[tuple[str, int, int]] = set()
        self.sources: dict[ExtentKey, int] = {}
        self._memory = memory
        self._disk = disk
        self._fault = fault

    def ready(self, folder: str, extent: Extent, begin: int, stop: int) -> Ready | None:
        """Bytes [begin, stop) of an extent, if they can be sent without waiting.

        Args:
            folder: of the extent's title.
            extent: which, as it lies now.
            begin: first byte.
            stop: one past the last.
        """
        key = (folder, extent.number)
        last = self.sources.get(key)
        if last is not None and not self.bad:
            # Nearly always, and then it is there: the shortest way there is.
            try:
                file = self._memory.ready(key, last, begin, stop, extent)
            except DiskError as error:
                self._fault(key, last, str(error))
                file = None
            if file is not None:
                # Its own constructor takes twice as long.
                return tuple.__new__(Ready, (file, begin, stop - begin, last, None))
        for number in extent.disks if last is None else (last, *extent.disks):
            if self.bad and (*key, number) in self.bad:
                continue
            ready = self._ready_on(number, key, extent, begin, stop)
            if ready is not None:
                return ready
        return None

    def learn(
        self, key: ExtentKey, number: int, low: int, high: int, file: OpenFile | None
    ) -> None:
        """Note that bytes [low, high) of an extent, whole spans, came from a disk and are right."""
        self._memory.learn(key, number, low, high, file)
        self.sources[key] = number

    def forget(self, key: ExtentKey, number: int) -> None:
        """A replica is bad, or has moved: look there no longer."""
        self._memory.forget(key, number)
        if self.sources.get(key) == number:
            del self.sources[key]

    def forget_title(self, title: Title, now: Title | None = None) -> None:
        """Replicas of a title are not where they were: let go of them, so that their files can go.

        Args:
            title: as it was.
            now: as it is; None if it was removed.
        """
        for extent in title.extents:
            kept = () if now is None else now.extents[extent.number].disks
            for number in extent.disks:
                if number not in kept:
                    self.forget((title.folder, extent.number), number)

    def _ready_on(
        self, number: int, key: ExtentKey, extent: Extent, begin: int, stop: int
    ) -> Ready | None:
        try:
            # Knows nothing of a disk that is not there, or is not paged.
            file = self._memory.ready(key, number, begin, stop, extent)
        except DiskError as error:
            self._fault(key, number, str(error))
            return None
        if file is not None:
            return Ready(file, begin, stop - begin, number)
        disk = self._disk(number)
        if disk is None or disk.paged:
            return None
        view = disk.peek(key, begin, stop - begin)
        return None if view is None else Ready(None, begin, len(view), number, view)
