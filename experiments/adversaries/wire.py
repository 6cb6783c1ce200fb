"""The BitTorrent peer wire protocol (BEP 3) as bytes in, messages out. No extensions.

Written for adversaries: it encodes whatever it is told, also what no honest peer would send. What
it reads is bounded, since what tests attack may attack back.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from experiments.adversaries.errors import WireError

__all__ = [
    "HANDSHAKE_BYTES",
    "Handshake",
    "Kind",
    "Message",
    "MessageBuffer",
    "Request",
    "bitfield",
    "pack",
    "piece_head",
]

_PROTOCOL = b"\x13BitTorrent protocol"
HANDSHAKE_BYTES = 68
_LONGEST_MESSAGE = 256 * 1024
_LONGEST_REQUEST = 128 * 1024


class Kind(IntEnum):
    """The messages of BEP 3."""

    CHOKE = 0
    UNCHOKE = 1
    INTERESTED = 2
    NOT_INTERESTED = 3
    HAVE = 4
    BITFIELD = 5
    REQUEST = 6
    PIECE = 7
    CANCEL = 8


@dataclass(frozen=True, slots=True)
class Handshake:
    """What each side says first. Both 20 bytes."""

    info_hash: bytes
    peer_id: bytes

    def pack(self) -> bytes:
        """As bytes; the reserved ones are zero: no extension is spoken."""
        return _PROTOCOL + bytes(8) + self.info_hash + self.peer_id

    @classmethod
    def parse(cls, data: bytes) -> "Handshake":
        """From bytes.

        Raises:
            WireError: it is none.
        """
        if len(data) != HANDSHAKE_BYTES or not data.startswith(_PROTOCOL):
            raise WireError("this is not the handshake of a BitTorrent peer")
        return cls(data[28:48], data[48:68])


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `kind` is a plain number where it is none of BEP 3."""

    kind: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes of a piece that are asked for, or no longer wanted."""

    piece: int
    start: int
    size: int

    def pack(self) -> bytes:
        """The payload of a request or a cancel."""
        return struct.pack(">III", self.piece, self.start, self.size)

    @classmethod
    def parse(cls, payload: bytes) -> "Request":
        """From the payload of a request or a cancel.

        Raises:
            WireError: it is none, or for more than anybody may ask at once.
        """
        if len(payload) != 12:
            raise WireError("a request has three numbers")
        request = cls(*struct.unpack(">III", payload))
        if not 0 < request.size <= _LONGEST_REQUEST:
            raise WireError(f"a request for {request.size} bytes")
        return request


def pack(kind: int, payload: bytes = b"") -> bytes:
    """A message as bytes."""
    return struct.pack(">IB", 1 + len(payload), kind) + payload


def piece_head(request: Request) -> bytes:
    """The beginning of a `piece` message: the block's bytes follow it."""
    head = struct.pack(">II", request.piece, request.start)
    return struct.pack(">IB", 9 + request.size, Kind.PIECE) + head


def bitfield(held: range, pieces: int) -> bytes:
    """The payload of a bitfield message that claims some pieces; the spare bits are zero."""
    bits = bytearray(-(-pieces // 8))
    for piece in held:
        bits[piece // 8] |= 0x80 >> piece % 8
    return bytes(bits)


class MessageBuffer:
    """Turns a stream of bytes into messages; keep-alives are swallowed."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes, give the messages that are complete.

        Raises:
            WireError: a message is longer than any that is expected.
        """
        self._data += data
        while len(self._data) >= 4:
            (size,) = struct.unpack_from(">I", self._data)
            if size > _LONGEST_MESSAGE:
                raise WireError(f"a message of {size} bytes")
            if len(self._data) < 4 + size:
                return
            body = bytes(self._data[4 : 4 + size])
            del self._data[: 4 + size]
            if body:
                yield Message(body[0], body[1:])
