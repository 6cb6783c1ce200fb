"""A film's poster: kept beside the film, and taken from it while it is being watched."""

import asyncio
import contextlib
import os
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import numpy as np

from toast.common.waiting import run_apart
from toast.media.errors import NotHereError, PictureError
from toast.media.poster import PosterSettings, take_poster
from toast.viewer.file_object import FilmObject

if TYPE_CHECKING:
    from toast.viewer.viewer import Viewer

__all__ = ["FilmPoster", "PresentFilm"]

_AGAIN_SECONDS: Final = 5.0
"""Between two looks, while the film grows."""
_READ_SECONDS: Final = 5.0
"""A read from the disk that takes longer is given up."""


class PresentFilm(FilmObject):
    """The film as a file for code in a thread, of which some is not there: reading never waits."""

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed: Buffer
        """Read what is there, at most to the end of the piece.

        Raises:
            NotHereError: nothing is there at this offset.
        """
        metainfo, geometry = self._viewer.metainfo, self._viewer.metainfo.geometry
        if self._offset >= metainfo.film_bytes or not len(buffer):
            return 0
        start = metainfo.film_start + self._offset
        piece = geometry.piece_of(start)
        end = min(geometry.piece_start(piece) + geometry.piece_size(piece), start + len(buffer))
        end = min(end, metainfo.film_start + metainfo.film_bytes)
        future = asyncio.run_coroutine_threadsafe(self._read(start, end), self._loop)
        data = future.result()
        buffer[: len(data)] = data
        self._offset += len(data)
        return len(data)

    async def _read(self, start: int, end: int) -> bytes:
        reading = self._viewer.reading
        if not reading.is_here(start):
            raise NotHereError("this part of the film is not here")
        try:
            # It may have been ejected meanwhile: then there is nobody to wait for.
            async with asyncio.timeout(_READ_SECONDS):
                return await reading.read(start, end)
        except TimeoutError as error:
            raise NotHereError("this part of the film cannot be read now") from error


class FilmPoster:
    """The poster of one film.

    Args:
        film: path of the film's file, which need not be there; the poster is kept beside it.
        settings: how it is looked for.
    """

    def __init__(self, film: Path, settings: PosterSettings | None = None) -> None:
        self._path = film.with_name(f".{film.name}.poster.jpg")
        self._settings = settings or PosterSettings()
        self._is_there = self._path.is_file()
        self._is_hopeless = False
        self._taking = asyncio.Lock()

    @property
    def is_there(self) -> bool:
        """Whether it has been taken."""
        return self._is_there

    async def load(self) -> bytes | None:
        """The poster that is kept, as JPEG; None if there is none."""
        if not self._is_there:
            return None
        data = await asyncio.to_thread(self._load)
        self._is_there = data is not None
        return data

    async def take(self, viewer: "Viewer") -> bytes | None:
        """The poster; taken from what is here of the film if it was not before, and then kept.

        Returns:
            None if too little of the film is here, or no picture can be had from it at all.
        """
        async with self._taking:
            if (kept := await self.load()) is not None:
                return kept
            return await self._take(viewer, anywhere=True)

    async def _take(self, viewer: "Viewer", *, anywhere: bool) -> bytes | None:
        if self._is_hopeless:
            return None
        film = cast("BinaryIO", PresentFilm(viewer, asyncio.get_running_loop()))
        try:
            data = await run_apart(partial(take_poster, film, self._settings, anywhere=anywhere))
        except PictureError as error:
            self._is_hopeless = not isinstance(error, NotHereError)
            return None
        await asyncio.to_thread(self._keep, data)
        return data

    async def run(self, viewer: "Viewer") -> None:
        """Take it as soon as enough of the film is here, and once more when its best place is.

        Returns when that is done, or cannot be.
        """
        if self._is_there:
            return
        tried = -1
        while True:
            here = int(np.count_nonzero(viewer.have))
            if here != tried:
                tried = here
                async with self._taking:
                    best = await self._take(viewer, anywhere=False)
                    if best is None and not self._is_there:
                        await self._take(viewer, anywhere=True)
                if best is not None or self._is_hopeless:
                    return
            await asyncio.sleep(_AGAIN_SECONDS)

    def _load(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                data = file.read(self._settings.most_bytes + 1)
        except OSError:
            return None
        return data if 0 < len(data) <= self._settings.most_bytes else None

    def _keep(self, data: bytes) -> None:
        """Write it whole or not at all; a poster that cannot be kept is taken again next time."""
        try:
            with NamedTemporaryFile(dir=self._path.parent, prefix=".poster-", delete=False) as file:
                file.write(data)
        except OSError:
            return
        try:
            Path(file.name).replace(self._path)
            self._is_there = True
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(file.name)  # noqa: PTH108 - pathlib has the same call, only longer
