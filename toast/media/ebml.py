"""The outermost elements of a Matroska or WebM file: where header and index are, and the index.

FFmpeg neither says where these stand nor reads the index (Cues) before the first seek.
Source: RFC 8794 (EBML) and RFC 9559 (Matroska), sections 5.1 and 6.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from toast.common.units import format_bytes
from toast.media.errors import MediaError

__all__ = ["Layout", "read_layout"]

_EBML: Final = 0x1A45DFA3
_SEGMENT: Final = 0x18538067
_SEEK_HEAD: Final = 0x114D9B74
_SEEK: Final = 0x4DBB
_SEEK_POSITION: Final = 0x53AC
_INFO: Final = 0x1549A966
_TIMESTAMP_SCALE: Final = 0x2AD7B1
_CLUSTER: Final = 0x1F43B675
_CUES: Final = 0x1C53BB6B
_CUE_POINT: Final = 0xBB
_CUE_TIME: Final = 0xB3
_CUE_TRACK_POSITIONS: Final = 0xB7
_CUE_CLUSTER_POSITION: Final = 0xF1
_VOID: Final = 0xEC

_MAX_ELEMENTS: Final = 256  # outermost ones before the first cluster; about six are usual
_MAX_PARSED: Final = 16 << 20  # bytes of Cues or SeekHead held in memory: ~1 million keyframes


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a Matroska file keeps what a player must read before it can play.

    Attributes:
        index: byte ranges [start, end) of everything but clusters and padding.
        cues: (film time in seconds, byte of the cluster) per entry of the index, in file order;
            empty if the file has no index.
        first_cluster: byte at which the media data begins.
    """

    index: tuple[tuple[int, int], ...]
    cues: tuple[tuple[float, int], ...]
    first_cluster: int


def read_layout(file: BinaryIO, size: int, name: str) -> Layout | None:
    """Walk over the outermost elements up to the first cluster, and read the Cues.

    Returns:
        The layout, or None if this is no file of EBML elements.

    Raises:
        MediaError: the file is cut short or holds no media data.
    """
    first = _header(file, 0)
    if first is None or first[0] != _EBML or first[2] is None:
        return None
    segment = _header(file, first[2])
    if segment is None or segment[0] != _SEGMENT:
        raise MediaError(f"{name} is cut short: nothing follows its header")
    _, origin, segment_end = segment
    if segment_end is not None and segment_end > size:
        raise MediaError(
            f"{name} is cut short: it should end at byte {segment_end}, and ends at {size} "
            f"({format_bytes(segment_end - size)} are missing)"
        )

    found, index, first_cluster = _before_media(file, origin, name)
    if _SEEK_HEAD in found:
        head = _content(file, *found[_SEEK_HEAD])
        for kind, start, content, end in _behind_media(file, head, origin, first_cluster, size):
            found[kind] = (content, end)
            index.append((start, end))
    cues = _cues(file, found, origin)
    usable = tuple(cue for cue in cues if first_cluster <= cue[1] < size)
    return Layout(tuple(index), usable, first_cluster)


def _before_media(
    file: BinaryIO, origin: int, name: str
) -> tuple[dict[int, tuple[int, int]], list[tuple[int, int]], int]:
    """Elements up to the first cluster: id -> content range, index ranges, the cluster's byte."""
    found: dict[int, tuple[int, int]] = {}
    index = [(0, origin)]
    at = origin
    for _ in range(_MAX_ELEMENTS):
        head = _header(file, at)
        kind, content, end = head or (0, at, None)
        if kind == _CLUSTER:
            return found, index, at
        if end is None:
            raise MediaError(f"{name} is cut short or damaged: no media data follows its header")
        found.setdefault(kind, (content, end))
        index.append((at, content if kind == _VOID else end))
        at = end
    raise MediaError(f"{name} is damaged: no media data among its first elements")


def _behind_media(
    file: BinaryIO, seek_head: bytes, origin: int, first_cluster: int, size: int
) -> Iterator[tuple[int, int, int, int]]:
    """Id, start, start of the content and end of what a SeekHead names behind the media data."""
    seeks = [value for kind, value in _children(seek_head) if kind == _SEEK]
    for seek in seeks[:_MAX_ELEMENTS]:
        start = origin + (_number(seek, _SEEK_POSITION) or 0)
        head = _header(file, start) if first_cluster < start < size else None
        # A SeekHead may be stale: what it names is a hint, not a fact.
        if head is not None and head[2] is not None and head[2] <= size and head[0] != _CLUSTER:
            yield head[0], start, head[1], head[2]


def _cues(
    file: BinaryIO, found: dict[int, tuple[int, int]], origin: int
) -> list[tuple[float, int]]:
    """Film time and byte of every entry of the index, in file order."""
    if _CUES not in found:
        return []
    scale = None
    if _INFO in found:
        scale = _number(_content(file, *found[_INFO]), _TIMESTAMP_SCALE)
    tick = (scale or 1_000_000) / 1e9  # a millisecond unless the file says so (RFC 9559, 5.1.2.9)
    points = _cue_points(_content(file, *found[_CUES]))
    return sorted(
        ((ticks * tick, origin + offset) for ticks, offset in points),
        key=lambda cue: (cue[1], cue[0]),
    )


def _vint(data: bytes, at: int, *, keep_marker: bool) -> tuple[int, int] | None:
    """A variable-length integer and the offset after it (RFC 8794, section 4)."""
    if at >= len(data) or data[at] == 0:
        return None
    length = 9 - data[at].bit_length()
    if at + length > len(data):
        return None
    value = int.from_bytes(data[at : at + length], "big")
    if not keep_marker:
        value &= (1 << (7 * length)) - 1
        if value == (1 << (7 * length)) - 1:
            value = -1  # all ones: the size is not known
    return value, at + length


def _header(file: BinaryIO, at: int) -> tuple[int, int, int | None] | None:
    """Id, start of the content, and end (None if unknown) of the element at a byte."""
    file.seek(at)
    data = file.read(12)  # an id has at most 4 bytes, a size at most 8
    kind = _vint(data, 0, keep_marker=True)
    length = _vint(data, kind[1], keep_marker=False) if kind else None
    if kind is None or length is None:
        return None
    content = at + length[1]
    return kind[0], content, None if length[0] < 0 else content + length[0]


def _content(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(min(end - start, _MAX_PARSED))


def _children(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while (kind := _vint(data, at, keep_marker=True)) is not None:
        length = _vint(data, kind[1], keep_marker=False)
        if length is None or length[0] < 0:
            return
        at = length[1] + length[0]
        yield kind[0], data[length[1] : at]


def _number(data: bytes, kind: int) -> int | None:
    for child, value in _children(data):
        if child == kind:
            return int.from_bytes(value[:8], "big")
    return None


def _cue_points(data: bytes) -> Iterator[tuple[int, int]]:
    """(ticks, cluster position in the segment) of each entry of Cues."""
    for kind, point in _children(data):
        if kind != _CUE_POINT:
            continue
        ticks = _number(point, _CUE_TIME)
        for child, positions in _children(point):
            offset = _number(positions, _CUE_CLUSTER_POSITION)
            if child == _CUE_TRACK_POSITIONS and ticks is not None and offset is not None:
                yield ticks, offset
