"""The outermost boxes of an MP4 or QuickTime file: where its index is, and whether it is whole.

FFmpeg reads the index but does not say where it stands in the file, and it opens a file whose
tail is missing without a word; both are one walk over a few box headers away.
Source: ISO/IEC 14496-12, section 4.2 (box structure).
"""

import struct
from dataclasses import dataclass
from typing import BinaryIO, Final

from toast.common.units import format_bytes
from toast.media.errors import MediaError

__all__ = ["Layout", "read_layout"]

_FIRST_BOXES: Final = frozenset(
    (b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx")
)
_WITHOUT_CONTENT: Final = frozenset((b"mdat", b"free", b"skip", b"wide"))
_MAX_BOXES: Final = 64  # a whole film has about four; fragmented ones end the walk at once


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an MP4 file keeps what a player must read before it can play.

    Attributes:
        index: byte ranges [start, end) of every box header and of all boxes but the media data.
        fragmented: the samples are described piecemeal all over the file (`moof` boxes).
    """

    index: tuple[tuple[int, int], ...]
    fragmented: bool


def read_layout(file: BinaryIO, size: int, name: str) -> Layout | None:
    """Walk over the outermost boxes, reading 16 bytes of each.

    Returns:
        The layout, or None if this is no file of boxes.

    Raises:
        MediaError: the file is cut short, or has no index.
    """
    index: list[tuple[int, int]] = []
    at = 0
    has_moov = False
    for _ in range(_MAX_BOXES):
        if at >= size:
            break
        kind, header, end = _read_box(file, at, size)
        if not index and kind not in _FIRST_BOXES:
            return None
        if kind == b"moof":
            return Layout(tuple(index), fragmented=True)
        if end > size:
            raise MediaError(
                f"{name} is cut short: its {_printable(kind)} box ends at byte {end}, the file at "
                f"{size} ({format_bytes(end - size)} are missing)"
            )
        if end < at + header:
            raise MediaError(f"{name} is damaged: the box at byte {at} has an impossible length")
        has_moov |= kind == b"moov"
        index.append((at, at + header if kind in _WITHOUT_CONTENT else end))
        at = end
    if not has_moov:
        raise MediaError(
            f"{name} has no index (moov box): it was cut short, or its recording never finished"
        )
    return Layout(tuple(index), fragmented=False)


def _read_box(file: BinaryIO, at: int, size: int) -> tuple[bytes, int, int]:
    """Type, length of the header, and end of the box that starts at a byte."""
    file.seek(at)
    head = file.read(16)
    if len(head) < 8:
        return b"", 0, at + 8  # the end of the file falls into a header: reported as cut short
    length, kind = struct.unpack(">I4s", head[:8])
    if length == 0:  # "to the end of the file"
        return kind, 8, size
    if length == 1:
        long = int.from_bytes(head[8:16], "big") if len(head) == 16 else 0
        return kind, 16, at + long
    return kind, 8, at + length


def _printable(kind: bytes) -> str:
    return kind.decode("ascii", "replace") if kind.isalnum() else "last"
