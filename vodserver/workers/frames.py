"""What goes over the channel between main process and worker: frames.

A frame is two lengths of four bytes, big-endian, then so many bytes of JSON (an object: the head)
and so many bytes of anything (the payload, mostly none). Pure: bytes in, frames out.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any, Final

from vodserver.errors import ChannelError

__all__ = ["MAX_HEAD_BYTES", "MAX_PAYLOAD_BYTES", "Decoder", "Frame", "encode"]

MAX_HEAD_BYTES: Final = 4 * 1024 * 1024
"""Of a head: the largest says what `/metrics` says, or names every disk of the store."""

MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
"""Of a payload: the most that the store reads at a time."""

_LENGTHS: Final = struct.Struct("!II")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message.

    Attributes:
        head: what JSON can carry.
        payload: bytes that go with it.
    """

    head: dict[str, Any]
    payload: bytes = b""


def encode(head: dict[str, Any], payload: bytes | memoryview = b"") -> bytes:
    """The bytes of a frame.

    Raises:
        ChannelError: it is too large.
        ValueError: the head is not for JSON.
        TypeError: likewise.
    """
    text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    _check(len(text), len(payload))
    return b"".join((_LENGTHS.pack(len(text), len(payload)), text, payload))


class Decoder:
    """Makes frames of bytes as they come, in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take some bytes; the frames that are whole now.

        Raises:
            ChannelError: this is no frame, or one that is too large; nothing more can be read.
        """
        self._buffer += data
        frames = []
        at = 0
        while len(self._buffer) - at >= _LENGTHS.size:
            head, payload = _LENGTHS.unpack_from(self._buffer, at)
            _check(head, payload)
            begin = at + _LENGTHS.size
            if len(self._buffer) - begin < head + payload:
                break
            at = begin + head + payload
            text = bytes(self._buffer[begin : begin + head])
            frames.append(Frame(_object(text), bytes(self._buffer[begin + head : at])))
        del self._buffer[:at]
        return frames


def _check(head: int, payload: int) -> None:
    if head > MAX_HEAD_BYTES or payload > MAX_PAYLOAD_BYTES:
        raise ChannelError(f"a message of {head} and {payload} bytes is too large")


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChannelError("a message is not JSON") from error
    if not isinstance(value, dict):
        raise ChannelError("a message is no JSON object")
    return value
