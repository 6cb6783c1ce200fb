"""Makes the block hashes of titles that have none, or none that can be read, from their replicas.

A title that an older version took in has none; the file of another may be lost or rotten. Nothing
else depends on them meanwhile: the title is served, and its .torrent just does not offer them, or
who asks for them is told to come again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

from toast.common.errors import ToastError
from vodserver.errors import ReadError, StoreError, StoreUsageError
from vodserver.store.blocks import BlocksWriter, fault_of, remove_blocks
from vodserver.store.catalog import Catalog, Title
from vodserver.store.events import BlocksBad, StoreEvent
from vodserver.store.removal import clear_blocks
from vodserver.store.schema import BLOCKS_NOTE
from vodserver.store.upkeep.pace import Pace
from vodserver.store.upkeep.threads import in_catalog, in_thread, to_the_end
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["BlocksKeeper", "make_blocks"]

_READ_BYTES: Final = 4 * 1024 * 1024
"""Read at a time: what a viewer may have to wait for. Whole blocks."""

_RETRY_SECONDS: Final = 600.0

_log = logging.getLogger(__name__)


async def make_blocks(
    workshop: Workshop, title_id: str, *, rate: float | None = None, deep: bool = True
) -> bool:
    """Make a title's block hashes, unless it has good ones.

    Args:
        workshop: of the store; one at a time makes any.
        title_id: which title.
        rate: bytes of film to read per second at most; None: as fast as the disks let it.
        deep: read those that are there, to see whether they are good.

    Returns:
        Whether they were made.

    Raises:
        ReadError: the film cannot be read whole.
        StoreError: they cannot be written.
    """
    async with workshop.making_blocks:
        store = workshop.store
        title = store.title(title_id)
        if title is None:
            return False
        found = title
        if title.block_roots and not await in_thread(
            lambda: fault_of(store.path, found, deep=deep)
        ):
            return False
        folder = title.folder
        try:
            await in_catalog(store, lambda catalog: catalog.set_note(BLOCKS_NOTE, folder))
            hashes = await _hash(workshop, title, rate)
            if hashes is not None:
                await to_the_end(_commit(workshop, title, *hashes))
        finally:
            # Nothing is left to do if they were committed; else what was begun goes.
            with suppress(StoreError):
                await to_the_end(in_catalog(store, clear_blocks))
        return hashes is not None


async def _hash(workshop: Workshop, title: Title, rate: float | None) -> tuple[bytes, bytes] | None:
    """Read the film and write its hashes; None if it was removed meanwhile."""
    store, pace = workshop.store, Pace(rate)
    writer = BlocksWriter(store.path, title.folder, title.piece_bytes)
    with closing(writer):
        await in_thread(writer.open)
        for number in range(len(title.extents)):
            current = store.title(title.id)
            if current is None or current.folder != title.folder:
                return None
            extent = current.extents[number]
            for begin in range(0, extent.size, _READ_BYTES):
                stop = min(begin + _READ_BYTES, extent.size)
                await pace.wait(stop - begin)
                try:
                    data = await store.read_extent(current, extent, begin, stop, background=True)
                except ReadError:
                    now = store.title(title.id)
                    if now is not None and now.folder == title.folder:
                        raise
                    return None
                await in_thread(lambda data=data: writer.add(data))  # type: ignore[misc]  # a default is no argument
        return await in_thread(writer.finish)


async def _commit(workshop: Workshop, title: Title, roots: bytes, sums: bytes) -> None:
    """Note what was made, and tell the store; these two belong together."""
    store = workshop.store

    def commit(catalog: Catalog) -> None:
        try:
            catalog.set_block_hashes(title.folder, roots, sums)
        except StoreUsageError:
            remove_blocks(store.path, title.folder)  # it was removed while its file was made
            raise

    await in_catalog(store, commit)
    workshop.include_blocks(title, roots, sums)


class BlocksKeeper:
    """Has block hashes made in the background, one title at a time.

    Args:
        workshop: of the store.
        rate: bytes of film to read per second at most.
    """

    def __init__(self, workshop: Workshop, rate: float) -> None:
        self._workshop = workshop
        self._rate = rate
        self._wanted: dict[str, bool] = {}
        self._changed = asyncio.Event()

    def start(self) -> Callable[[], None]:
        """Look at every title, and listen from now on to what is found; returns what ends it."""
        for title in self._workshop.store.titles():
            self._want(title.id, deep=False)
        return self._workshop.store.subscribe(self._listen)

    async def run(self) -> None:
        """Make what is missing, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._wanted:
                title_id = next(iter(self._wanted))
                deep = self._wanted.pop(title_id)
                await self._make(title_id, deep=deep)

    async def _make(self, title_id: str, *, deep: bool) -> None:
        try:
            if await make_blocks(self._workshop, title_id, rate=self._rate, deep=deep):
                _log.info("made the block hashes of '%s'", title_id)
        except (ToastError, OSError) as error:
            _log.warning("cannot make the block hashes of '%s' yet: %s", title_id, error)
            loop = asyncio.get_running_loop()
            loop.call_later(_RETRY_SECONDS, lambda: self._want(title_id, deep=deep))

    def _listen(self, event: StoreEvent) -> None:
        if isinstance(event, BlocksBad):
            self._want(event.title.id, deep=True)

    def _want(self, title_id: str, *, deep: bool) -> None:
        self._wanted[title_id] = self._wanted.get(title_id, False) or deep
        self._changed.set()
