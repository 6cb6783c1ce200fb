"""When each byte of a film is needed: the map between bytes and film time.

The film is cut into equal cells; each cell knows the film time at which the player needs the
first of its bytes. The map is made once, by who puts the film on offer, and travels in the
.torrent outside `info` (so that the info-hash and stock clients do not notice it).
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from toast.common.errors import UsageError
from toast.common.geometry import BLOCK_BYTES, Geometry

__all__ = ["MAX_CELLS", "TimeMap", "cell_bytes_for"]

MAX_CELLS: Final = 16384
"""A map has at most so many cells: 0.2 s of an hour-long film each, 64 KiB before compression."""

_MAX_RANGES: Final = 64
_MAX_FILM_BYTES: Final = 1 << 46  # 64 TiB: far beyond any film, and exact as a float
_MAX_MS: Final = 2**31 - 1
_MAX_SOURCE: Final = 32
_VERSION: Final = 1

_Ranges = tuple[tuple[int, int], ...]


def cell_bytes_for(film_bytes: int) -> int:
    """The size of a cell: the least power of two >= 16 KiB that gives at most `MAX_CELLS` cells."""
    cell = BLOCK_BYTES
    while -(-film_bytes // cell) > MAX_CELLS:
        cell *= 2
    return cell


@dataclass(frozen=True, eq=False)
class TimeMap:
    """The film time at which each part of a film is needed.

    Attributes:
        film_bytes: size of the film in bytes.
        duration: length of the film in seconds.
        cell_bytes: size of every cell but perhaps the last.
        due: float64[cells], film time in seconds at which the first needed byte of each cell is
            needed. Not necessarily monotone: badly interleaved films are read in two places.
        index: byte ranges [start, end) of container header and index, needed before anything.
        startup: byte ranges [start, end) needed to show the first picture; includes `index`.
        source: where the map came from: a container's name, or "constant" (assumed bit rate).
        keys: float64[n], film times at which key frames are shown, rising; at most `MAX_CELLS`,
            perhaps not all, and none if they are not known. Only with one of them can a picture
            begin: a player that is to show a time reads from the last one not after it.
        key_cells: int64[n], the cell in which each of them begins. Players decode a picture before
            they show it, so what of that cell is due may be due earlier than the key frame.

    Raises:
        UsageError: the parts do not fit together.
    """

    film_bytes: int
    duration: float
    cell_bytes: int
    due: NDArray[np.float64] = field(repr=False)
    index: _Ranges
    startup: _Ranges
    source: str
    keys: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)
    key_cells: NDArray[np.int64] = field(
        default_factory=lambda: np.empty(0, dtype=np.int64), repr=False
    )

    def __post_init__(self) -> None:
        if not 0 < self.film_bytes <= _MAX_FILM_BYTES:
            raise UsageError(f"time map: a film of {self.film_bytes} bytes is not possible")
        if not (math.isfinite(self.duration) and 0 < self.duration * 1000 <= _MAX_MS):
            raise UsageError(f"time map: a film of {self.duration} seconds is not possible")
        cell = self.cell_bytes
        if cell < BLOCK_BYTES or cell & (cell - 1):
            raise UsageError(f"time map: a cell of {cell} bytes is no power of two >= 16 KiB")
        cells = -(-self.film_bytes // cell)
        due = np.array(self.due, dtype=np.float64)  # a copy: nobody else may change what we freeze
        if cells > MAX_CELLS or due.shape != (cells,):
            raise UsageError(f"time map: {due.size} cells given where {cells} are needed")
        if not np.isfinite(due).all() or due.min() < 0 or due.max() > self.duration:
            raise UsageError("time map: a cell is due outside the film's duration")
        if not (self.source.isascii() and self.source.isalnum()) or len(self.source) > _MAX_SOURCE:
            raise UsageError("time map: the source is no short name")
        for ranges in (self.index, self.startup):
            if len(ranges) > _MAX_RANGES:
                raise UsageError(f"time map: more than {_MAX_RANGES} byte ranges")
            if any(not 0 <= start < end <= self.film_bytes for start, end in ranges):
                raise UsageError("time map: a byte range lies outside the film")
        due.flags.writeable = False
        object.__setattr__(self, "due", due)
        object.__setattr__(self, "keys", _checked_keys(self.keys, self.duration))
        object.__setattr__(self, "key_cells", _checked_cells(self.key_cells, self.keys.size, cells))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimeMap):
            return NotImplemented
        return self._key() == other._key() and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("due", "keys", "key_cells")
        )

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (
            self.film_bytes,
            self.duration,
            self.cell_bytes,
            self.index,
            self.startup,
            self.source,
        )

    @classmethod
    def constant(cls, film_bytes: int, duration: float) -> Self:
        """The map of a film whose bit rate never changes and that has no index: a fallback."""
        cell = cell_bytes_for(film_bytes)
        cells = -(-film_bytes // cell)
        due = np.arange(cells, dtype=np.float64) * (cell * duration / max(1, film_bytes))
        first = ((0, min(BLOCK_BYTES, film_bytes)),)
        return cls(film_bytes, duration, cell, due, (), first, "constant")

    def within(self, start: int, total_bytes: int) -> Self:
        """The same map, counted in the bytes of something larger that the film is a part of.

        What lies around the film is never needed: it counts as due when the film ends. A cell that
        the film has only a part of is due when that part is.

        Args:
            start: where the film's first byte is.
            total_bytes: size of the larger thing.

        Raises:
            UsageError: the film does not fit in there.
        """
        if not 0 <= start <= total_bytes - self.film_bytes:
            raise UsageError("time map: the film does not lie in its torrent")
        if total_bytes == self.film_bytes:
            return self
        cell = max(self.cell_bytes, cell_bytes_for(total_bytes))
        due = np.full(-(-total_bytes // cell), self.duration)
        begins = start + np.arange(self.due.size, dtype=np.int64) * self.cell_bytes
        ends = np.minimum(begins + self.cell_bytes, start + self.film_bytes)
        np.minimum.at(due, begins // cell, self.due)
        np.minimum.at(due, (ends - 1) // cell, self.due)  # a cell here may begin in one there
        return type(self)(
            total_bytes,
            self.duration,
            cell,
            due,
            tuple((start + first, start + end) for first, end in self.index),
            tuple((start + first, start + end) for first, end in self.startup),
            self.source,
            self.keys,
            (start + self.key_cells * self.cell_bytes) // cell,
        )

    def key_before(self, time: float) -> tuple[float, float] | None:
        """With which key frame a player begins that is to show the picture of a time.

        Returns:
            The film time at which the latest known key frame not after the time is shown, and the
            film time, not after that, from which the cell in which it begins is no longer needed
            (but for the key frame); None if no key frame is known so early.
        """
        place = int(np.searchsorted(self.keys, time, side="right")) - 1
        if place < 0:
            return None
        shown = float(self.keys[place])
        return shown, min(shown, float(self._until[self.key_cells[place]]))

    @property
    def bit_rate(self) -> float:
        """Mean rate of the film in bytes per second."""
        return self.film_bytes / self.duration

    def due_of_pieces(self, geometry: Geometry) -> NDArray[np.float64]:
        """Film time in seconds at which each piece is first needed, float64[pieces].

        Pieces that hold a part of `index` or `startup` are due at 0.

        Raises:
            UsageError: the geometry is that of another film.
        """
        least = np.minimum.reduceat(np.append(self.due, np.inf), self._bounds(geometry))[
            0::2
        ].copy()
        for start, end in (*self.index, *self.startup):
            pieces = geometry.pieces_of(start, end)
            least[pieces.start : pieces.stop] = 0.0
        return least

    def until_of_pieces(self, geometry: Geometry) -> NDArray[np.float64]:
        """Film time in seconds from which each piece is no longer needed, float64[pieces].

        The last byte of a cell is needed until the player comes, in file order, to a cell that is
        due later. Pieces that hold a part of `index` are needed as long as one plays: +inf.

        Raises:
            UsageError: the geometry is that of another film.
        """
        most = np.maximum.reduceat(np.append(self._until, -np.inf), self._bounds(geometry))
        most = most[0::2].copy()
        for start, end in self.index:
            pieces = geometry.pieces_of(start, end)
            most[pieces.start : pieces.stop] = np.inf
        return most

    def due_of_blocks(
        self, geometry: Geometry, piece: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """When the blocks of one piece are needed.

        Returns:
            float64[blocks], film time at which each is first needed; float64[blocks], from which
            it is no longer; bool[blocks], whether it holds a part of `startup`.
        """
        blocks = geometry.blocks_in(piece)
        first = geometry.piece_start(piece)
        cells = (first + np.arange(blocks, dtype=np.int64) * BLOCK_BYTES) // self.cell_bytes
        due, until = self.due[cells], self._until[cells]
        startup = np.zeros(blocks, dtype=np.bool_)
        for ranges, index in ((self.startup, False), (self.index, True)):
            for start, end in ranges:
                low = max(start - first, 0) // BLOCK_BYTES
                high = max(-(-(end - first) // BLOCK_BYTES), 0)
                startup[low:high] = True
                due[low:high] = 0.0
                if index:
                    until[low:high] = np.inf
        return due, until, startup

    @cached_property
    def _until(self) -> NDArray[np.float64]:
        """Film time from which each cell is no longer needed, float64[cells]."""
        due = self.due
        end = due.size
        # For each cell the next one that is due later: leap over those that are not. What a cell
        # leaps over is due no later than itself, so it may leap as far as the one it stands on.
        following = np.arange(1, end + 1)
        padded = np.append(due, np.inf)
        left = np.arange(end)
        while (left := left[padded[following[left]] <= due[left]]).size:
            following[left] = following[following[left]]
        until = padded[following]
        until[following == end] = np.nextafter(self.duration, np.inf)
        return until

    def _bounds(self, geometry: Geometry) -> NDArray[np.int64]:
        """First cell, and cell after the last, of each piece in turn: as `reduceat` wants them."""
        if geometry.film_bytes != self.film_bytes:
            raise UsageError(
                f"time map: made for a film of {self.film_bytes} bytes, "
                f"but this one has {geometry.film_bytes}"
            )
        starts = np.arange(geometry.pieces, dtype=np.int64) * geometry.piece_bytes
        ends = np.minimum(starts + geometry.piece_bytes, self.film_bytes)
        bounds = np.empty(2 * starts.size, dtype=np.int64)
        bounds[0::2] = starts // self.cell_bytes
        # One past the end is a lawful bound only because callers pad by one element.
        bounds[1::2] = (ends - 1) // self.cell_bytes + 1
        return bounds

    def time_of(self, offset: int) -> float:
        """Film time in seconds at which the cell that holds a byte is needed.

        Never later than the byte itself is needed. Offsets outside the film are clamped to it.
        """
        return float(self.due[min(max(offset, 0), self.film_bytes - 1) // self.cell_bytes])

    def byte_of(self, time: float) -> int:
        """How far into the file a player has read at a film time, in bytes; between 0 and the size.

        In a badly interleaved film it is the place of its foremost reader in file order, and
        `time_of(byte_of(time)) <= time` always holds inside the film.
        """
        if time >= self.duration:
            return self.film_bytes
        front = np.maximum.accumulate(self.due)
        cell = int(np.searchsorted(front, time, side="right")) - 1
        if cell < 0:
            return 0
        following = float(front[cell + 1]) if cell + 1 < front.size else self.duration
        done = (time - float(front[cell])) / (following - float(front[cell]))
        end = min((cell + 1) * self.cell_bytes, self.film_bytes)
        offset = cell * self.cell_bytes + int(done * (end - cell * self.cell_bytes))
        return min(offset, end - 1)  # rounding must not carry it into the next, later cell

    def to_bencodable(self) -> dict[bytes, Any]:
        """The map as bencodable values, for the key `toast` of a .torrent; times in whole ms."""
        # Rounded down: a piece may be wanted a moment early, never a moment late.
        due_ms = np.floor(self.due * 1000 + 1e-6).astype(np.int64)
        deltas = np.diff(due_ms, prepend=0).astype("<i4")
        keys: dict[bytes, Any] = {}
        if self.keys.size:
            keys_ms = np.floor(self.keys * 1000 + 1e-6).astype(np.int64)
            steps = np.diff(keys_ms, prepend=0).astype("<i4")
            cells = np.diff(self.key_cells, prepend=0).astype("<i4")
            keys = {
                b"key cells": zlib.compress(cells.tobytes(), 9),
                b"key count": self.keys.size,
                b"keys": zlib.compress(steps.tobytes(), 9),
            }
        return keys | {
            b"cell": self.cell_bytes,
            b"due": zlib.compress(deltas.tobytes(), 9),
            b"duration ms": max(1, math.ceil(self.duration * 1000 - 1e-6)),
            b"film bytes": self.film_bytes,
            b"index": [list(pair) for pair in self.index],
            b"source": self.source.encode(),
            b"startup": [list(pair) for pair in self.startup],
            b"version": _VERSION,
        }

    @classmethod
    def from_bencodable(cls, value: object) -> Self:
        """Read what `to_bencodable` made, out of a .torrent that a stranger may have written.

        Memory and time are bounded by the size of the largest lawful map.

        Raises:
            UsageError: the value is no time map.
        """
        if not isinstance(value, Mapping):
            raise UsageError("time map: not a dictionary")
        fields = {
            k.encode("utf-8", "replace") if isinstance(k, str) else k: v for k, v in value.items()
        }
        if _int(fields, b"version", _MAX_MS) != _VERSION:
            raise UsageError("time map: made by a later version of this program; please update")
        film_bytes = _int(fields, b"film bytes", _MAX_FILM_BYTES)
        cell = _int(fields, b"cell", _MAX_FILM_BYTES)
        cells = -(-film_bytes // cell)
        if cells > MAX_CELLS:
            raise UsageError(f"time map: {cells} cells, and {MAX_CELLS} is the most")
        source = fields.get(b"source")
        if isinstance(source, bytes):
            source = source.decode("latin-1")
        if not isinstance(source, str):
            raise UsageError("time map: 'source' is no name")
        due = _inflate(fields, b"due", cells) / 1000
        keys, key_cells = np.empty(0), np.empty(0, dtype=np.int64)
        if b"keys" in fields:
            count = _int(fields, b"key count", MAX_CELLS)
            keys = _inflate(fields, b"keys", count) / 1000
            if b"key cells" in fields:
                key_cells = _inflate(fields, b"key cells", count)
            else:
                key_cells = _cells_before(keys, due)
        return cls(
            film_bytes,
            _int(fields, b"duration ms", _MAX_MS) / 1000,
            cell,
            due,
            _ranges(fields, b"index"),
            _ranges(fields, b"startup"),
            source,
            keys,
            key_cells,
        )


def _checked_keys(keys: NDArray[np.float64], duration: float) -> NDArray[np.float64]:
    keys = np.array(keys, dtype=np.float64)
    if keys.ndim != 1 or keys.size > MAX_CELLS or not np.isfinite(keys).all():
        raise UsageError(f"time map: more than {MAX_CELLS} key frames, or times that are none")
    if keys.size and (keys[0] < 0 or keys[-1] > duration or (np.diff(keys) < 0).any()):
        raise UsageError("time map: its key frames are in no order")
    keys.flags.writeable = False
    return keys


def _checked_cells(key_cells: NDArray[np.int64], keys: int, cells: int) -> NDArray[np.int64]:
    key_cells = np.array(key_cells, dtype=np.int64)
    if key_cells.shape != (keys,) or (keys and not 0 <= key_cells.min() <= key_cells.max() < cells):
        raise UsageError("time map: its key frames begin nowhere in the film")
    key_cells.flags.writeable = False
    return key_cells


def _cells_before(keys: NDArray[np.float64], due: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where key frames begin of which only the times of decoding are known: so maps once were.

    A key frame begins behind the last picture of the cell before the one that is due with it.
    """
    front = np.maximum.accumulate(due)
    return np.maximum(np.searchsorted(front, keys, side="left") - 1, 0)


def _int(fields: Mapping[Any, Any], key: bytes, most: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(f"time map: '{key.decode()}' is no number between 1 and {most}")
    return value


def _ranges(fields: Mapping[Any, Any], key: bytes) -> _Ranges:
    value = fields.get(key)
    if not isinstance(value, list | tuple) or len(value) > _MAX_RANGES:
        raise UsageError(f"time map: '{key.decode()}' is no list of at most {_MAX_RANGES} ranges")
    ranges = []
    for pair in value:
        if not (isinstance(pair, list | tuple) and [type(n) for n in pair] == [int, int]):
            raise UsageError(f"time map: '{key.decode()}' holds something that is no byte range")
        ranges.append((pair[0], pair[1]))
    return tuple(ranges)


def _inflate(fields: Mapping[Any, Any], key: bytes, count: int) -> NDArray[np.int64]:
    packed, name = fields.get(key), key.decode()
    if not isinstance(packed, bytes):
        raise UsageError(f"time map: '{name}' is no byte string")
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, 4 * count + 1)  # never more than a lawful map holds
    except zlib.error as error:
        raise UsageError(f"time map: '{name}' cannot be decompressed ({error})") from error
    if len(raw) != 4 * count:
        raise UsageError(f"time map: '{name}' does not hold {count} times")
    return np.cumsum(np.frombuffer(raw, dtype="<i4").astype(np.int64))
