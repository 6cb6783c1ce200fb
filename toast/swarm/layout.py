"""Where the bytes of a torrent lie on disk: its piece space as segments of files.

A film that is kept is one ordinary file that other programs can play. A film of which only a part
may be kept lies in a folder beside it, one file per piece: deleting such a file is the only way
to give its space back.
"""

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from toast.common.geometry import Geometry

__all__ = ["Layout", "Part", "Segment"]

_CHUNK_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes [start, start + size) of the torrent are the whole of the file `name`.

    Attributes:
        name: path below the folder of films, with forward slashes.
        start: first byte, in piece space.
        size: bytes, > 0.
    """

    name: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of one file: `size` bytes from `offset` on."""

    path: Path
    offset: int
    size: int


class Layout:
    """The files of one torrent in one folder.

    Args:
        folder: where films are kept.
        segments: in order, without gaps, covering the whole torrent.
        per_piece: whether each piece is a file of its own, and can be ejected.
    """

    def __init__(
        self, folder: Path, segments: tuple[Segment, ...], *, per_piece: bool = False
    ) -> None:
        self.folder = folder
        self.segments = segments
        self.per_piece = per_piece
        self._starts = [segment.start for segment in segments]

    @classmethod
    def whole(cls, folder: Path, name: str, geometry: Geometry) -> Self:
        """One film, one file."""
        return cls(folder, (Segment(name, 0, geometry.film_bytes),))

    @classmethod
    def chunks(cls, folder: Path, name: str, geometry: Geometry) -> Self:
        """A file for each piece, in the folder NAME.pieces."""
        segments = tuple(
            Segment(
                f"{name}.pieces/{piece:0{_CHUNK_DIGITS}d}",
                geometry.piece_start(piece),
                geometry.piece_size(piece),
            )
            for piece in range(geometry.pieces)
        )
        return cls(folder, segments, per_piece=True)

    def path(self, segment: Segment) -> Path:
        """The file of a segment."""
        return self.folder / segment.name

    def parts(self, start: int, end: int) -> list[Part]:
        """The pieces of files that hold bytes [start, end), in order."""
        parts = []
        index = bisect_right(self._starts, start) - 1
        while start < end:
            segment = self.segments[index]
            size = min(end, segment.start + segment.size) - start
            parts.append(Part(self.path(segment), start - segment.start, size))
            start += size
            index += 1
        return parts

    def delete(self, piece: int) -> None:
        """Delete the file of one piece, if it is there.

        Raises:
            OSError: it cannot be deleted.
        """
        assert self.per_piece, "only pieces in files of their own can be deleted"
        self.path(self.segments[piece]).unlink(missing_ok=True)
