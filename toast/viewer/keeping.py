"""What of a film is kept on disk: all of it, or a part that moves along with the playhead."""

import asyncio
import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from toast.policy.buffer import Buffer, create_buffer, pieces_within
from toast.swarm import FilmFile, Layout, Metainfo
from toast.viewer.errors import FilmUnavailable
from toast.viewer.reading import Reading
from toast.viewer.settings import ViewerSettings

__all__ = ["Keeping"]


class Keeping:
    """How much of one film is kept, and what is known of the rest.

    Args:
        metainfo: the film.
        settings: the viewer's.

    Attributes:
        layout: where its bytes lie.
        file: what is stored of it.
        wanted: bool[pieces], those that the film is in, and the subtitles with it. The others are
            never missing: for all decisions they count as had.
        seen: bool[pieces], here and verified at some time, or not wanted.

    Raises:
        PolicyError: a buffer too small for the film.
    """

    def __init__(self, metainfo: Metainfo, settings: ViewerSettings) -> None:
        geometry = metainfo.geometry
        self._settings = settings
        self._pieces = pieces_within(
            metainfo.film_bytes,
            geometry.piece_bytes,
            most_bytes=settings.buffer_bytes,
            fraction=settings.buffer_fraction,
        )
        if self._pieces is not None:
            self.layout = Layout.chunks(settings.folder, metainfo.name, geometry)
        elif metainfo.contents is not None:
            self.layout = Layout.several(settings.folder, metainfo.contents, geometry)
        else:
            self.layout = Layout.whole(settings.folder, metainfo.name, geometry)
        self.wanted = metainfo.wanted(subtitles=self._pieces is None)
        self.file = FilmFile(self.layout, geometry, metainfo.piece_hashes)
        self.seen: NDArray[np.bool_] = ~self.wanted
        self._span = (metainfo.film_start, metainfo.film_start + metainfo.film_bytes)
        self._sha256: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the film will never be on the disk as a whole."""
        return self._pieces is not None

    async def look(self, progress: Callable[[int, int], None] | None) -> NDArray[np.bool_]:
        """bool[pieces]: what is on the disk intact.

        Raises:
            SwarmError: something other than the film is in its place.
        """
        return await asyncio.to_thread(self.file.scan, progress)

    def make_buffer(self) -> Buffer:
        """The policy of what is kept."""
        if self._pieces is None:
            return create_buffer("unlimited")
        return create_buffer(
            "limited", pieces=self._pieces, back_seconds=self._settings.back_seconds
        )

    async def hash_what_comes(self, reading: Reading) -> None:
        """Take the film's SHA-256 piece by piece: later it is not there any more."""
        digest = hashlib.sha256()
        try:
            at, end = self._span
            while at < end:
                data = await reading.read(at, end)
                await asyncio.to_thread(digest.update, data)
                at += len(data)
        except FilmUnavailable:
            return  # ended before all of it came
        self._sha256 = digest.hexdigest()

    async def sha256(self, have: NDArray[np.bool_]) -> str | None:
        """Of the film, hexadecimal; None if it was never there as a whole, or not in order.

        Args:
            have: bool[pieces], what is stored and verified.
        """
        if have.all():
            return await asyncio.to_thread(self.file.sha256, *self._span)
        return self._sha256
