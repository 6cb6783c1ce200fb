"""The film as a file, for code that knows nothing of asyncio."""

import asyncio
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toast.viewer.viewer import Viewer

__all__ = ["FilmObject"]


class FilmObject(io.RawIOBase):
    """The film as a file for code in a thread; how it is read is for others to say.

    Args:
        viewer: the viewing that the film belongs to.
        loop: the viewing's event loop.
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
        size = self._viewer.metainfo.film_bytes
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: size}[whence]
        self._offset = max(0, base + offset)
        return self._offset
