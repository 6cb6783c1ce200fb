"""The UDP tracker protocol between bytes and facts. Pure.

Sources: BEP 15 (connect, announce, scrape, error), BEP 41 (options behind the announce request:
URL data). Numbers are big-endian. The `ip` field of an announce is ignored, as BEP 15 allows:
anyone could name a victim there. So is `key`.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from tracker.errors import RequestError
from tracker.messages import Event, SwarmCounts

__all__ = [
    "ANNOUNCE",
    "ANNOUNCE_BYTES",
    "ANNOUNCE_HEAD",
    "CONNECT",
    "EVENTS",
    "HEAD",
    "HEAD_BYTES",
    "PROTOCOL_ID",
    "SCRAPE",
    "UdpAnnounce",
    "encode_announce_request",
    "encode_connect",
    "encode_connect_request",
    "encode_error",
    "encode_options",
    "encode_scrape",
    "encode_scrape_request",
    "parse_announce",
    "parse_options",
    "parse_scrape",
]

PROTOCOL_ID: Final = 0x41727101980
CONNECT, ANNOUNCE, SCRAPE, ERROR = range(4)
"""Actions."""

HEAD: Final = Struct(">QII")
"""Connection id (in a connect request: the protocol id), action, transaction id."""

HEAD_BYTES: Final = HEAD.size
ANNOUNCE_HEAD: Final = Struct(">IIIII")
"""Answer to an announce: action, transaction id, interval (seconds), leechers, seeders."""

_ANNOUNCE: Final = Struct(">20s20sQQQIIIiH")
ANNOUNCE_BYTES: Final = HEAD_BYTES + _ANNOUNCE.size
_CONNECT_ANSWER: Final = Struct(">IIQ")
_ERROR: Final = Struct(">II")
_COUNTS: Final = Struct(">III")
_HASH_BYTES: Final = 20
_END, _NOP, _URL_DATA = range(3)

EVENTS: Final = (Event.NONE, Event.COMPLETED, Event.STARTED, Event.STOPPED)
"""By the number that BEP 15 gives them."""


class UdpAnnounce(NamedTuple):
    """An announce request behind its head, field by field as BEP 15 lists them."""

    info_hash: bytes
    peer_id: bytes
    downloaded: int
    left: int
    uploaded: int
    event: int
    ip: int
    key: int
    numwant: int
    port: int


def parse_announce(
    datagram: bytes | bytearray, size: int
) -> tuple[bytes, bytes, int, int, int, int, int, int, int, int]:
    """Read the first `size` bytes as an announce request (BEP 15).

    Returns:
        The fields of an `UdpAnnounce`, as a plain tuple: to name them takes as long as to read.

    Raises:
        RequestError: it is cut short, or its event is none.
    """
    if size < ANNOUNCE_BYTES:
        raise RequestError(f"an announce has {ANNOUNCE_BYTES} bytes, not {size}")
    fields = _ANNOUNCE.unpack_from(datagram, HEAD_BYTES)
    if fields[5] >= len(EVENTS):
        raise RequestError(f"event {fields[5]} is none of 0 to 3")
    return fields


def parse_options(datagram: bytes | bytearray, size: int) -> bytes:
    """The URL data of an announce's options, put together; empty if there is none (BEP 41).

    Raises:
        RequestError: an option is cut short.
    """
    found, place = b"", ANNOUNCE_BYTES
    while place < size and datagram[place] != _END:
        kind = datagram[place]
        place += 1
        if kind == _NOP:
            continue
        if place >= size or place + 1 + datagram[place] > size:
            raise RequestError("an option is cut short")
        end = place + 1 + datagram[place]
        if kind == _URL_DATA:
            found += datagram[place + 1 : end]
        place = end
    return found


def parse_scrape(datagram: bytes | bytearray, size: int, max_hashes: int) -> tuple[bytes, ...]:
    """The info-hashes of a scrape request, as they stand there (BEP 15).

    Raises:
        RequestError: none, too many, or the last is cut short.
    """
    count, rest = divmod(size - HEAD_BYTES, _HASH_BYTES)
    if rest or count < 1:
        raise RequestError("a scrape names info-hashes of 20 bytes each, and at least one")
    if count > max_hashes:
        raise RequestError(f"a scrape may name at most {max_hashes} info-hashes")
    starts = range(HEAD_BYTES, size, _HASH_BYTES)
    return tuple(bytes(datagram[start : start + _HASH_BYTES]) for start in starts)


def encode_connect(transaction: int, connection_id: int) -> bytes:
    """The answer to a connect: 16 bytes, as many as the request has."""
    return _CONNECT_ANSWER.pack(CONNECT, transaction, connection_id)


def encode_scrape(transaction: int, counts: Iterable[SwarmCounts]) -> bytes:
    """The answer to a scrape: seeders, completed, leechers of each in the order of the request."""
    return _ERROR.pack(SCRAPE, transaction) + b"".join(
        _COUNTS.pack(swarm.complete, swarm.downloaded, swarm.incomplete) for swarm in counts
    )


def encode_error(transaction: int, message: str) -> bytes:
    """The answer that refuses a request."""
    return _ERROR.pack(ERROR, transaction) + message.encode()


def encode_connect_request(transaction: int) -> bytes:
    """What a client sends first."""
    return HEAD.pack(PROTOCOL_ID, CONNECT, transaction)


def encode_announce_request(
    connection_id: int, transaction: int, announce: UdpAnnounce, options: bytes = b""
) -> bytes:
    """An announce, as a client sends it."""
    return HEAD.pack(connection_id, ANNOUNCE, transaction) + _ANNOUNCE.pack(*announce) + options


def encode_scrape_request(
    connection_id: int, transaction: int, info_hashes: Sequence[bytes]
) -> bytes:
    """A scrape, as a client sends it."""
    return HEAD.pack(connection_id, SCRAPE, transaction) + b"".join(info_hashes)


def encode_options(url_data: bytes) -> bytes:
    """URL data as BEP 41 options: parts of at most 255 bytes, and the end."""
    parts = (url_data[start : start + 255] for start in range(0, len(url_data), 255))
    return b"".join(bytes((_URL_DATA, len(part))) + part for part in parts) + bytes((_END,))
