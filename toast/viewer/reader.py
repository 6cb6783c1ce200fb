"""Reading the film while it arrives: for players, and for looking into its container."""

import asyncio
import io
import mimetypes
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from toast.swarm import Metainfo

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
    def film_name(self) -> str:
        """The film's file name."""
        return self._metainfo.name

    @property
    def film_bytes(self) -> int:
        """The film's size."""
        return self._metainfo.geometry.film_bytes

    @property
    def etag(self) -> str:
        """The info-hash: equal means equal bytes."""
        return f'"{self._metainfo.info_hash.hex()}"'

    @property
    def content_type(self) -> str:
        """By the film's name; video/mp4 where that says nothing."""
        return mimetypes.guess_type(self._metainfo.name)[0] or "video/mp4"

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes]:
        """Verified bytes [start, end), each piece as soon as it is there.

        Raises:
            FilmUnavailable: a piece is to be had from nobody.
        """
        geometry = self._metainfo.geometry
        self._viewer.reader_opened(start)
        for piece in geometry.pieces_of(start, end):
            data = await self._viewer.wait_piece(piece)
            first = geometry.piece_start(piece)
            yield data[max(0, start - first) : end - first]


class BlockingFilm(io.RawIOBase):
    """The film as a file for code in a thread that knows nothing of asyncio, such as PyAV.

    Every piece that is read is wanted at once, wherever the playhead is.
    """

    def __init__(self, viewer: "Viewer", loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._viewer = viewer
        self._loop = loop
        self._offset = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The next byte's offset."""
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset."""
        size = self._viewer.metainfo.geometry.film_bytes
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: size}[whence]
        self._offset = max(0, base + offset)
        return self._offset

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed: Buffer
        """Read up to the end of the current piece, waiting for it."""
        geometry = self._viewer.metainfo.geometry
        if self._offset >= geometry.film_bytes:
            return 0
        piece = geometry.piece_of(self._offset)
        future = asyncio.run_coroutine_threadsafe(
            self._viewer.wait_piece(piece, urgent=True), self._loop
        )
        data = future.result()
        part = data[self._offset - geometry.piece_start(piece) :][: len(buffer)]
        buffer[: len(part)] = part
        self._offset += len(part)
        return len(part)
