"""Where the bytes of a torrent lie on disk: its piece space as segments of files.

A film that is kept is one ordinary file that other programs can play. A film of which only a part
may be kept lies in a folder beside it, one file per piece: deleting such a file is the only way
to give its space back.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Self

from toast.common.geometry import Geometry
from toast.swarm.contents import Contents

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

    @classmethod
    def several(cls, folder: Path, contents: Contents, geometry: Geometry) -> Self:
        """A film and its subtitles as ordinary files, of a torrent that holds more.

        Their first and last pieces hold something of other files, too. That goes into a hidden
        folder: without it those pieces could be neither checked nor shared.
        """
        film, name = contents.film, contents.film.path.name
        kept = {film.start: Segment(name, film.start, film.size)}
        names = {name.casefold()}
        for file in contents.subtitles:
            beside = _beside(film.path, file.path)
            if beside.casefold() not in names:
                names.add(beside.casefold())
                kept[file.start] = Segment(beside, file.start, file.size)
        segments: list[Segment] = []

        def fill(until: int) -> None:
            """What lies between files: what shares a piece with them, and what does not."""
            at = segments[-1].start + segments[-1].size if segments else 0
            step = geometry.piece_bytes
            cuts = {at, until, min(until, -(-at // step) * step), max(at, until // step * step)}
            for start, end in pairwise(sorted(cuts)):
                segments.append(Segment(f".{name}.edges/{start}", start, end - start))

        for start in sorted(kept):
            fill(start)
            segments.append(kept[start])
        fill(geometry.film_bytes)
        return cls(folder, tuple(segments))

    def path(self, segment: Segment) -> Path:
        """The file of a segment."""
        return self.folder / segment.name

    def paths(self) -> list[str]:
        """The files as libtorrent wants them: several must share a folder, or be absolute."""
        if self.per_piece or len(self.segments) == 1:
            return [segment.name for segment in self.segments]
        return [str(self.path(segment).absolute()) for segment in self.segments]

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


def _beside(film: PurePosixPath, subtitles: PurePosixPath) -> str:
    """What a file of subtitles is called beside the film: by its name it is known to belong."""
    if subtitles.name.casefold().startswith(film.stem.casefold() + "."):
        return subtitles.name
    return f"{film.stem}.{subtitles.name}"
