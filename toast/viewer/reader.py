"""Reading the film while it arrives: for players, and for looking into its container."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from toast.media.side_files import SideFile, SideFiles
from toast.media.types import film_type
from toast.policy.audience import Reader
from toast.swarm import Metainfo
from toast.viewer.file_object import FilmObject
from toast.viewer.poster import FilmPoster

if TYPE_CHECKING:
    from toast.viewer.viewer import Viewer

__all__ = ["BlockingFilm", "FilmReader"]


class FilmReader:
    """A film under way as something that can be read, in the shape that the gateway wants.

    Args:
        viewer: the viewing that the film belongs to.
    """

    def __init__(self, viewer: "Viewer") -> None:
        self._viewer = viewer
        self._metainfo: Metainfo = viewer.metainfo

    @property
    def film_id(self) -> str:
        """The info-hash, in hexadecimal digits."""
        return self._metainfo.info_hash.hex()

    @property
    def title(self) -> str:
        """The film's name without its ending."""
        return PurePath(self._metainfo.name).stem

    @property
    def duration_seconds(self) -> float | None:
        """Its length; None until its time map is known."""
        timemap = self._viewer.timemap
        return None if timemap is None else timemap.duration

    @property
    def subtitles(self) -> Sequence[SideFile]:
        """Those in files beside the film."""
        return self._side_files.list()

    @cached_property
    def _poster(self) -> FilmPoster:
        return FilmPoster(self._viewer.settings.folder / self._metainfo.name)

    @cached_property
    def _side_files(self) -> SideFiles:
        return SideFiles(self._viewer.settings.folder / self._metainfo.name)

    @property
    def last_modified(self) -> float | None:
        """Nobody knows."""
        return None

    async def poster(self) -> bytes | None:
        """A frame of it; None while too little of it is here."""
        return await self._poster.take(self._viewer)

    @property
    def film_name(self) -> str:
        """The film's file name."""
        return self._metainfo.name

    @property
    def film_bytes(self) -> int:
        """The film's size."""
        return self._metainfo.film_bytes

    @property
    def etag(self) -> str:
        """The info-hash: equal means equal bytes."""
        return f'"{self.film_id}"'

    @property
    def content_type(self) -> str:
        """By the film's name; video/mp4 where that says nothing."""
        return film_type(self._metainfo.name)

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes]:
        """Verified bytes [start, end), each as soon as it is there.

        Raises:
            FilmUnavailable: a piece is to be had from nobody.
        """
        reading = self._viewer.reading
        start, end = start + self._metainfo.film_start, end + self._metainfo.film_start
        reader: Reader | None = None
        try:
            while start < end:
                # As long as the film's times are not known there is nothing to tell of a reader.
                reader = reader or self._viewer.open_reader(start)
                if reader is not None and not reading.is_here(start):
                    self._viewer.reader_waits(reader)
                data = await reading.read(start, end)
                if reader is not None:
                    reader.waiting = False
                yield data
                # Whoever comes back for more has taken it.
                start += len(data)
                self._viewer.reader_taken(reader, start)
        finally:
            self._viewer.reader_left(reader)


class BlockingFilm(FilmObject):
    """The film as a file for code in a thread that knows nothing of asyncio, such as PyAV.

    Every piece that is read is wanted at once, wherever the playhead is.
    """

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed: Buffer
        """Read up to the end of the current piece, waiting for it."""
        metainfo, geometry = self._viewer.metainfo, self._viewer.metainfo.geometry
        if self._offset >= metainfo.film_bytes:
            return 0
        at = metainfo.film_start + self._offset
        piece = geometry.piece_of(at)
        future = asyncio.run_coroutine_threadsafe(
            self._viewer.reading.piece(piece, urgent=True), self._loop
        )
        data = future.result()
        most = min(len(buffer), metainfo.film_bytes - self._offset)
        part = data[at - geometry.piece_start(piece) :][:most]
        buffer[: len(part)] = part
        self._offset += len(part)
        return len(part)
