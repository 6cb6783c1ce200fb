"""A worker's side: the store and the gatekeeper of the main process, as HTTP needs them.

Titles are read from the catalog, and bytes are sent from the kernel's memory, by the worker itself.
Only what is not in memory is asked of the main process: it has the disks' queues, reads, verifies,
and tells which disk's replica is in memory now.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from vodserver.errors import ChannelError, ReadError, StoreError
from vodserver.http.admission import Refusal
from vodserver.store import Disk, Extent, Ready, RealDisk, Title
from vodserver.store.blocks import read_blocks
from vodserver.store.catalog import CATALOG_NAME, Catalog
from vodserver.store.disks import ExtentKey
from vodserver.store.dispatched import Dispatched
from vodserver.store.files import OpenFile
from vodserver.store.layout import extent_path
from vodserver.store.memory import Memory
from vodserver.store.resident import Resident, part_of
from vodserver.store.rows import DiskRow
from vodserver.store.store import StoreStatistics
from vodserver.workers.channel import Channel

__all__ = ["RemoteGate", "RemoteStore"]

_MOST_TRIES: Final = 3
_RETRY_SECONDS: Final = 5.0


class RemoteStore:
    """What HTTP needs of a store that another process has.

    Args:
        path: the store's directory.
        disks: where each disk is that is there, by number.
        bad: replicas known to be bad: folder, extent number, disk number.
        dispatched: counts of the reads that the main process gives its disks.
        channel: to the process that has the store.

    Raises:
        StoreError: the catalog cannot be read.
    """

    def __init__(
        self,
        path: Path,
        *,
        disks: Mapping[int, Path],
        bad: set[tuple[str, int, int]],
        dispatched: Dispatched,
        channel: Channel,
    ) -> None:
        self.disk_rows: list[DiskRow] = []
        """None: disks are the main process's."""
        self._path = path
        self._channel = channel
        self._catalog = Catalog(path / CATALOG_NAME)
        self._titles = {title.id: title for title in self._catalog.titles()}
        self._memory = Memory(dispatched)
        self._disks: dict[int, Disk] = {}
        self._resident = Resident(self._memory, disk=self._disks.get, fault=self._doubt)
        self._resident.bad |= bad
        self._sent: dict[int, list[int]] = {}
        self._opening: dict[tuple[ExtentKey, int], asyncio.Task[OpenFile]] = {}
        self._doubts: set[asyncio.Task[None]] = set()
        self.set_disks(disks)

    def close(self) -> None:
        """Let go of everything."""
        self._memory.clear()
        self._catalog.close()

    def hold_at_most(self, count: int) -> None:
        """Keep so many bytes of what is asked for most in memory; see `Store.hold_at_most`."""
        self._memory.most_held_bytes = count

    # --- news

    def set_disks(self, paths: Mapping[int, Path]) -> None:
        """These disks are there, and no others."""
        for number in [n for n, disk in self._disks.items() if paths.get(n) != disk.path]:
            del self._disks[number]
            self._memory.forget_disk(number)
        for number in paths.keys() - self._disks.keys():
            self._disks[number] = RealDisk(paths[number])

    def renew(self, title_id: str) -> None:
        """A title was added, changed or removed: read it again."""
        try:
            title = self._catalog.title(title_id)
        except StoreError:
            title = None  # the catalog went away under a server that is about to go as well
        before = self._titles.get(title_id)
        if before is not None:
            same = title is not None and title.folder == before.folder
            self._resident.forget_title(before, title if same else None)
        if title is None:
            self._titles.pop(title_id, None)
        else:
            self._titles[title_id] = title

    def distrust(self, folder: str, number: int, disk: int) -> None:
        """A replica was found to be bad."""
        self._resident.forget((folder, number), disk)
        self._resident.bad.add((folder, number, disk))

    # --- what HTTP asks

    def titles(self) -> list[Title]:
        """Every title, in the order in which they were added."""
        return list(self._titles.values())

    def title(self, title_id: str) -> Title | None:
        """The title of this id, if there is one."""
        return self._titles.get(title_id)

    def statistics(self) -> StoreStatistics:
        """Nothing: disks are the main process's."""
        return StoreStatistics({}, 0)

    def ready(self, title: Title, at: int, end: int) -> Ready | None:
        """What of bytes [at, end) can be sent without waiting, from `at` on; see `Store.ready`."""
        extent, begin, stop = self._part(title, at, end)
        return self._resident.ready(title.folder, extent, begin, stop)

    def note_fault(self, title: Title, at: int, disk: int, fault: str) -> None:
        """The replica with byte `at` on this disk cannot be sent: the main process looks at it."""
        extent, _, _ = self._part(title, at, at + 1)
        self._doubt((title.folder, extent.number), disk, fault)

    def note_resident(self, disk: int, size: int) -> None:
        """Count bytes that were sent without asking the disk that they lie on."""
        counts = self._sent.setdefault(disk, [0, 0])
        counts[0] += 1
        counts[1] += size

    def tell_resident(self) -> None:
        """Have the main process count what was sent from memory since the last time."""
        if self._sent:
            sent, self._sent = self._sent, {}
            self._channel.tell("resident", disks=[[n, *counts] for n, counts in sent.items()])

    async def fetch(self, title: Title, at: int, end: int, *, keep: bool = False) -> Ready:
        """Wait for bytes [at, end) of a film, as far as one extent goes; see `Store.fetch`.

        Raises:
            ReadError: no replica of the extent holds what was written, or the main process is gone.
        """
        extent, begin, stop = self._part(title, at, end)
        where = {"title": title.id, "at": at, "end": at + stop - begin}
        for turn in range(_MOST_TRIES):
            # At the last, the bytes themselves: memory may be so short that nothing stays in it.
            as_bytes = keep or turn + 1 == _MOST_TRIES
            result, payload = await self._ask(where | {"turn": turn, "bytes": as_bytes})
            disk = int(result["disk"])
            if payload:
                return Ready(None, begin, len(payload), disk, memoryview(payload))
            ready = await self._find(title.folder, extent, begin, stop, disk)
            if ready is not None:
                return ready
        raise ReadError(f"extent {extent.number} of '{title.id}' cannot be sent")

    async def read_blocks(self, title: Title, start: int, end: int) -> bytes:
        """Bytes [start, end) of the hashes of a title's blocks, verified.

        Raises:
            ReadError: they are not there, or not what was written.
        """
        try:
            return await asyncio.to_thread(read_blocks, self._path, title, start, end)
        except ReadError:
            self._channel.tell("blocks", title=title.id)
            raise

    def _part(self, title: Title, at: int, end: int) -> tuple[Extent, int, int]:
        return part_of(self._titles.get(title.id, title), at, end)

    async def _ask(self, what: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            return await self._channel.ask("fetch", **what)
        except ChannelError as error:
            raise ReadError(str(error)) from error

    async def _find(
        self, folder: str, extent: Extent, begin: int, stop: int, disk: int
    ) -> Ready | None:
        """What the main process has just read from a disk, if it is in memory still."""
        key = folder, extent.number
        there = self._disks.get(disk)
        if there is None:
            return None
        file = None
        if not self._memory.has(key, disk):
            try:
                file = await self._open(key, disk, there.path)
            except OSError:
                return None  # it went meanwhile
            if self._disks.get(disk) is not there:
                return None  # and so did the whole disk
        self._resident.bad.discard((*key, disk))  # it was just read, and was right there
        # It is open now, and nothing of it is known: who wrote to it before, or what was read into
        # it since the main process verified it, nobody would notice here.
        self._resident.learn(key, disk, begin, begin, file)
        return self._resident.ready(folder, extent, begin, stop)

    async def _open(self, key: ExtentKey, disk: int, path: Path) -> OpenFile:
        """Open a replica, in a thread since disks may hang; once for all who want it."""
        task = self._opening.get((key, disk))
        if task is None:
            opening = asyncio.to_thread(OpenFile, extent_path(path, *key))
            task = self._opening[key, disk] = asyncio.create_task(opening)
            task.add_done_callback(lambda _: self._opening.pop((key, disk), None))
        return await asyncio.shield(task)

    def _doubt(self, key: ExtentKey, number: int, _: str) -> None:
        """What is in memory is not what was written: the main process shall look at the disk."""
        self.distrust(*key, number)
        task = asyncio.get_running_loop().create_task(self._have_checked(key, number))
        self._doubts.add(task)
        task.add_done_callback(self._doubts.discard)

    async def _have_checked(self, key: ExtentKey, number: int) -> None:
        try:
            result, _ = await self._channel.ask("doubt", folder=key[0], extent=key[1], disk=number)
        except ChannelError:
            return  # it stays in doubt
        if result["good"]:
            self._resident.bad.discard((*key, number))


class RemoteGate:
    """Lets streams in as the main process decides, for all workers together.

    Args:
        channel: to the main process.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)

    async def admit(
        self, title: Title, start: int, end: int, rate: float
    ) -> Callable[[], None] | Refusal:
        """Ask for leave to stream; see `Gatekeeper.admit`."""
        ticket = next(self._numbers)
        asked = {"ticket": ticket, "title": title.id, "start": start, "end": end, "rate": rate}
        try:
            result, _ = await self._channel.ask("admit", **asked)
        except ChannelError as error:
            return Refusal(str(error), "queue", _RETRY_SECONDS)
        except asyncio.CancelledError:
            self._channel.tell("release", ticket=ticket)  # it may have been given just now
            raise
        if "reason" in result:
            return Refusal(result["reason"], result["cause"], float(result["retry_seconds"]))
        return lambda: self._channel.tell("release", ticket=ticket)
