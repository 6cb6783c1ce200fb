"""What is decided about a film before its first extent is written, and kept until its last."""

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from typing import BinaryIO, Final, Self

from toast.common.geometry import BLOCK_BYTES

__all__ = ["Cut", "FilmIdentity", "IngestPlan", "cut_of"]

EXTENT_SECONDS: Final = 5.0
"""One extent holds so much video: what a viewer may wait for, and enough to pay for one seek."""

_MIN_PIECE: Final = BLOCK_BYTES
_MAX_PIECE: Final = 4 * 1024 * 1024
_MAX_PIECES: Final = 16_384
_MAX_EXTENT: Final = 64 * 1024 * 1024  # an extent is held in memory while it is taken in
_ENDS_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cut:
    """How a film is cut: bytes of a piece and of an extent (whole pieces)."""

    piece_bytes: int
    extent_bytes: int


def cut_of(film_bytes: int, duration: float, piece_bytes: int | None = None) -> Cut:
    """Cut a film by its mean bit rate.

    A piece is the largest power of two that holds at most a second of video, so that the playhead
    is never far behind a piece's first byte; films of many hours get larger ones, to keep their
    .torrent small. An extent is 5 s of video, rounded up to whole pieces.

    Args:
        film_bytes: size, > 0.
        duration: seconds, > 0.
        piece_bytes: of another size of piece, if one is wanted: a power of two.
    """
    rate = film_bytes / duration
    piece = _MIN_PIECE
    while piece < _MAX_PIECE and (piece * 2 <= rate or -(-film_bytes // piece) > _MAX_PIECES):
        piece *= 2
    piece = piece_bytes or piece
    wanted = -(-round(rate * EXTENT_SECONDS) // piece) * piece
    return Cut(piece, min(max(wanted, piece), _MAX_EXTENT))


@dataclass(frozen=True, slots=True)
class FilmIdentity:
    """By what a film is known again, whatever its path.

    It decides only whether it is worth to go on where an earlier `add` was stopped: every extent
    is compared before it is trusted.

    Attributes:
        size: bytes.
        mtime_ns: when the file was last changed, nanoseconds.
        head: SHA-256 of its first MiB, hex.
        tail: SHA-256 of its last MiB, hex.
    """

    size: int
    mtime_ns: int
    head: str
    tail: str

    @classmethod
    def of(cls, film: BinaryIO) -> Self:
        """The identity of an open film; it is left at its start."""
        facts = os.fstat(film.fileno())
        film.seek(0)
        head = hashlib.sha256(film.read(_ENDS_BYTES)).hexdigest()
        film.seek(max(facts.st_size - _ENDS_BYTES, 0))
        tail = hashlib.sha256(film.read(_ENDS_BYTES)).hexdigest()
        film.seek(0)
        return cls(facts.st_size, facts.st_mtime_ns, head, tail)


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What it takes to go on with a film whose `add` was stopped.

    Attributes:
        path: where the film was.
        film: what film it is.
        cut: how it is cut.
        placement: disk numbers of each extent, in film order.
    """

    path: str
    film: FilmIdentity
    cut: Cut
    placement: tuple[tuple[int, ...], ...]

    def to_json(self) -> str:
        """As the catalog keeps it."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self | None:
        """The plan that was kept; None if it is not one that this program wrote."""
        try:
            value = json.loads(text)
            return cls(
                str(value["path"]),
                FilmIdentity(**value["film"]),
                Cut(**value["cut"]),
                tuple(tuple(int(disk) for disk in disks) for disks in value["placement"]),
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
