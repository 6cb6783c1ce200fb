"""What goes over the line between a guest and this machine: programs, and their streams. Pure.

A frame is a channel (a program, numbered by who starts it), a kind, and data: eight bytes of
header, then the data.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

__all__ = ["MOST_DATA_BYTES", "Decoder", "Frame", "Kind", "encode"]

MOST_DATA_BYTES: Final = 1 << 16
_HEADER: Final = struct.Struct("!HBxI")


class Kind(IntEnum):
    """What a frame says."""

    START = 1
    """To the guest: JSON in several frames, the last of them `BEGIN`."""
    BEGIN = 2
    """To the guest: `argv`, `cwd` and `env` are complete; start it."""
    INPUT = 3
    """To the guest: standard input; empty for its end."""
    SIGNAL = 4
    """To the guest: a signal's number, as text."""
    OUTPUT = 5
    """From the guest: standard output."""
    ERRORS = 6
    """From the guest: standard error."""
    EXIT = 7
    """From the guest, the last of a channel: exit code as `subprocess` has it, as text."""
    READY = 8
    """From the guest, once: it takes frames now; or why it cannot, as text."""
    POWER_OFF = 9
    """To the guest: end."""
    TAKEN = 10
    """From the guest: so many bytes of the line were read, as text."""


class Frame(NamedTuple):
    """One of them."""

    channel: int
    kind: Kind
    data: bytes = b""


def encode(channel: int, kind: Kind, data: bytes = b"") -> bytes:
    """The frames that carry data of any length."""
    parts = [data[at : at + MOST_DATA_BYTES] for at in range(0, len(data), MOST_DATA_BYTES)]
    return b"".join(_HEADER.pack(channel, kind, len(part)) + part for part in parts or [b""])


class Decoder:
    """Bytes in, frames out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes.

        Raises:
            ValueError: they are no frames.
        """
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            channel, kind, length = _HEADER.unpack_from(self._buffer)
            if length > MOST_DATA_BYTES:
                raise ValueError(f"a frame of {length} bytes")
            end = _HEADER.size + length
            if len(self._buffer) < end:
                return
            frame = Frame(channel, Kind(kind), bytes(self._buffer[_HEADER.size : end]))
            del self._buffer[:end]
            yield frame
