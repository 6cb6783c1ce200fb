"""A directory that takes as long as a disk would, and can be made sick while it is used.

It stands behind the store's `Disk` protocol, so that the real server reads it. Nothing of it is in
the kernel's memory as far as the server knows: every read that is asked for costs its time.
"""

import contextlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from experiments.arrays.arm import LATE_SECONDS
from experiments.arrays.disk import DiskModel, Fault, FaultKind, read_seconds
from vodserver.errors import DiskError
from vodserver.store.disks import ExtentKey, RealDisk

__all__ = ["EmulatedDisk", "FaultFile", "ReadMemory"]

_LOOK_SECONDS: Final = 0.02


class FaultFile:
    """The faults of an array in a file, which is written anew to switch them.

    Args:
        path: a list of faults as JSON, with the fields `disk`, `kind` and `share`; none if it is
            not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._faults: list[Fault] = []

    def of(self, disk: int) -> list[Fault]:
        """What is wrong with a disk now."""
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return []
        seen = stat.st_mtime_ns, stat.st_ino
        if seen != self._seen:
            # Half a file is that of a moment: the next look has it all.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._faults = [
                    Fault(
                        disk=int(row["disk"]),
                        kind=FaultKind(row["kind"]),
                        share=float(row["share"]),
                        end_seconds=1e12,
                    )
                    for row in json.loads(self._path.read_text(encoding="utf-8"))
                ]
                self._seen = seen
        return [fault for fault in self._faults if fault.disk == disk]


class ReadMemory:
    """What disks have read last, so many extents: what the kernel's memory is to real ones.

    Disks read in threads of their own, and share one.

    Args:
        extents: that it holds; who was used least recently leaves first.
    """

    def __init__(self, extents: int) -> None:
        self._most = extents
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[Path, ExtentKey], tuple[int, bytearray]] = OrderedDict()

    def learn(self, disk: Path, extent: ExtentKey, offset: int, data: memoryview) -> None:
        """Keep what was read; what follows what is there already lengthens it."""
        key = disk, extent
        with self._lock:
            begin, held = self._held.pop(key, (offset, bytearray()))
            if offset != begin + len(held):
                begin, held = offset, bytearray()
            self._held[key] = begin, held + data  # a new one: the old one may be being sent
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def peek(self, disk: Path, extent: ExtentKey, offset: int, length: int) -> memoryview | None:
        """A part of an extent, if all of it is here."""
        key = disk, extent
        with self._lock:
            begin, held = self._held.get(key, (0, bytearray()))
            if not begin <= offset < offset + length <= begin + len(held):
                return None
            self._held.move_to_end(key)
        return memoryview(held)[offset - begin : offset - begin + length]


class EmulatedDisk(RealDisk):
    """A disk of a model, over a directory.

    A read that goes on where the last one ended needs no access of the arm.

    Args:
        path: the directory.
        model: what reads take.
        chance: for access times.
        faults: what is wrong with it now.
        memory: where what was read can be had again at once; none if not given.
        clock: seconds, monotonic.
        sleep: waits so many.
    """

    paged = False

    def __init__(
        self,
        path: Path,
        model: DiskModel,
        chance: np.random.Generator,
        *,
        faults: Callable[[], Sequence[Fault]] = tuple,
        memory: ReadMemory | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(path)
        self._model = model
        self._chance = chance
        self._faults = faults
        self._memory = memory
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0
        self._told_at = 0.0
        self._next: tuple[ExtentKey, int] | None = None

    def read(
        self, extent: ExtentKey, offset: int, length: int, *, direct: bool = False
    ) -> memoryview:
        """Read a part of an extent, in its time; see `Disk.read`."""
        faults = self._faults()
        if any(fault.kind is FaultKind.DEATH for fault in faults):
            raise DiskError(f"{self.path} does not answer")
        asked = self._clock()
        data = super().read(extent, offset, length, direct=direct)
        self._take(asked, extent, offset, length, faults)
        while any(fault.kind is FaultKind.STALL for fault in self._faults()):
            self._sleep(_LOOK_SECONDS)
        for fault in faults:
            if fault.kind in {FaultKind.ERROR, FaultKind.CORRUPT}:
                if self._chance.uniform() >= fault.share:
                    continue
                if fault.kind is FaultKind.ERROR:
                    raise DiskError(f"{self.path} cannot be read: Input/output error")
                return memoryview(bytes([data[0] ^ 0xFF]) + bytes(data[1:]))
        if self._memory is not None and not direct:
            self._memory.learn(self.path, extent, offset, data)
        return data

    def peek(self, extent: ExtentKey, offset: int, length: int) -> memoryview | None:
        """What is in its memory; see `Disk.peek`."""
        if self._memory is None:
            return None
        return self._memory.peek(self.path, extent, offset, length)

    def _take(
        self, asked: float, extent: ExtentKey, offset: int, length: int, faults: Sequence[Fault]
    ) -> None:
        """Let the time of a read pass; what the files themselves took is a part of it."""
        begins = self._free_at if asked - self._told_at < LATE_SECONDS else asked
        slow = [fault for fault in faults if fault.kind is FaultKind.STUTTER]
        chance = float(self._chance.uniform())
        seconds = read_seconds(self._model, slow, length, begins, place=0.5, chance=chance)
        if self._next == (extent, offset):
            seconds -= self._model.seconds(0, 0.5, chance)
        self._next = extent, offset + length
        self._free_at = begins + seconds
        left = self._free_at - self._clock()
        if left > 0:
            self._sleep(left)
        self._told_at = max(self._clock(), self._free_at)
