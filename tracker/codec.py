"""Tracker messages between bytes and facts: queries in, bencoded answers out. Pure.

Sources: BEP 3 (announce, dictionary model), BEP 7 (IPv6, `peers6`), BEP 23 (compact lists),
BEP 48 (scrape). Stated leniency: unknown parameters and unknown events are ignored, as are the
`ipv4` and `ipv6` parameters of BEP 7 (anyone could name a victim there); `+` is a plus sign, as in
RFC 3986, not the blank of HTML forms.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

import bencode2

from tracker.errors import RequestError
from tracker.messages import Announce, AnnounceAnswer, Event, Peer, SwarmCounts, pack_address

__all__ = [
    "MAX_PLAYHEAD_SECONDS",
    "encode_announce",
    "encode_failure",
    "encode_scrape",
    "parse_announce",
    "parse_passkey",
    "parse_playhead",
    "parse_scrape",
]

MAX_PLAYHEAD_SECONDS: Final = 1_000_000.0
"""No film lasts twelve days; a larger playhead is nonsense."""

_MAX_LEFT: Final = 2**63 - 1
_ESCAPED: Final = {
    (high + low).encode(): bytes.fromhex(high + low)
    for high in "0123456789ABCDEFabcdef"
    for low in "0123456789ABCDEFabcdef"
}
"""What two hexadecimal digits stand for (RFC 3986 section 2.1)."""

_INTEGER: Final = re.compile(rb"-?[0-9]{1,20}\Z")
_DECIMAL: Final = re.compile(rb"[0-9]{1,7}(\.[0-9]{1,9})?\Z")
_EVENTS: Final = {event.value: event for event in Event}
_READ: Final = frozenset(
    b"info_hash peer_id port left event numwant compact no_peer_id ip playhead".split()
)


def parse_announce(query: bytes) -> Announce:
    """Read the query string of an announce (BEP 3, "Trackers").

    Args:
        query: what stands behind the `?`, still percent-encoded.

    Raises:
        RequestError: a parameter is missing, doubled or malformed.
    """
    fields: dict[bytes, bytes] = {}
    for part in query.split(b"&"):
        name, _, value = part.partition(b"=")
        if name not in _READ:
            continue
        if name in fields:
            raise RequestError(f"{name.decode()} is given twice")
        fields[name] = _unquote(name, value)
    ip, playhead = fields.get(b"ip"), fields.get(b"playhead")
    return Announce(
        info_hash=_twenty_bytes(fields, b"info_hash"),
        peer_id=_twenty_bytes(fields, b"peer_id"),
        port=_port(fields),
        left=_integer(fields, b"left", 0, _MAX_LEFT),
        event=_EVENTS.get(fields.get(b"event", b""), Event.NONE),
        numwant=_numwant(fields),
        compact=fields.get(b"compact") != b"0",
        no_peer_id=fields.get(b"no_peer_id") == b"1",
        # BEP 3 allows a DNS name here; we never look one up for a stranger.
        ip=None if ip is None else pack_address(ip.decode("ascii", "replace")),
        playhead=None if playhead is None else _seconds(playhead),
    )


def parse_playhead(query: bytes) -> float | None:
    """The playhead alone, of a query that came as BEP 41 URL data; None if it has none.

    Raises:
        RequestError: it is given twice or malformed.
    """
    value = _only(query, b"playhead")
    return None if value is None else _seconds(value)


def parse_passkey(query: bytes) -> bytes | None:
    """The passkey alone; None if there is none.

    Raises:
        RequestError: it is given twice or malformed.
    """
    return _only(query, b"passkey")


def parse_scrape(query: bytes, max_hashes: int) -> tuple[bytes, ...]:
    """Read the query string of a scrape (BEP 48): the info-hashes asked for, each once.

    BEP 48 lets a tracker answer a scrape without info-hash with all it knows; ours does not, since
    such an answer has no bound.

    Raises:
        RequestError: no info-hash, too many, or a malformed one.
    """
    found: dict[bytes, None] = {}
    for name, value in _pairs(query):
        if name == b"info_hash":
            found[_exactly_twenty(name, _unquote(name, value))] = None
            if len(found) > max_hashes:
                raise RequestError(f"a scrape may name at most {max_hashes} info_hash")
    if not found:
        raise RequestError("info_hash is missing: this tracker lists no torrents")
    return tuple(found)


def encode_announce(
    answer: AnnounceAnswer, request: Announce, *, interval_seconds: int, min_interval_seconds: int
) -> bytes:
    """The body that answers an announce, in the form the client asked for.

    `compact=0` gives the BEP 3 dictionary model, with two keys of ours where they are known:
    `playhead` (integer milliseconds) and `complete` (1). Otherwise BEP 23 `peers` and, if there are
    any, BEP 7 `peers6`.
    """
    counts = answer.counts
    body: dict[bytes, object] = {
        b"complete": counts.complete,
        b"downloaded": counts.downloaded,
        b"incomplete": counts.incomplete,
        b"interval": interval_seconds,
        b"min interval": min_interval_seconds,
    }
    if not request.compact:
        body[b"peers"] = [
            _peer_dictionary(peer, with_id=not request.no_peer_id) for peer in answer.peers
        ]
        return bencode2.bencode(body)
    body[b"peers"] = answer.packed4
    if answer.packed6:
        body[b"peers6"] = answer.packed6
    return bencode2.bencode(body)


def encode_scrape(counts: Mapping[bytes, SwarmCounts]) -> bytes:
    """The body that answers a scrape: BEP 48 `files`, by info-hash."""
    return bencode2.bencode(
        {
            b"files": {
                info_hash: {
                    b"complete": swarm.complete,
                    b"downloaded": swarm.downloaded,
                    b"incomplete": swarm.incomplete,
                }
                for info_hash, swarm in counts.items()
            }
        }
    )


def encode_failure(reason: str, retry: int | str | None = None) -> bytes:
    """The body that refuses a request: BEP 3 `failure reason`, and BEP 31 `retry in` (minutes)."""
    body: dict[bytes, object] = {b"failure reason": reason}
    if retry is not None:
        body[b"retry in"] = retry
    return bencode2.bencode(body)


def _peer_dictionary(peer: Peer, *, with_id: bool) -> dict[bytes, object]:
    entry: dict[bytes, object] = {
        b"ip": str(ipaddress.ip_address(peer.address)),
        b"port": peer.port,
    }
    if with_id:
        entry[b"peer id"] = peer.peer_id
    if peer.playhead is not None:
        entry[b"playhead"] = round(peer.playhead * 1000)
    if peer.complete:
        entry[b"complete"] = 1
    return entry


def _pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    pairs = [part.partition(b"=") for part in query.split(b"&") if part]
    return [(name, value) for name, _, value in pairs]


def _unquote(name: bytes, value: bytes) -> bytes:
    # The standard library's passes over broken escapes, and to look for them first costs as much.
    if b"%" not in value:
        return value
    plain, *escaped = value.split(b"%")
    try:
        return plain + b"".join([_ESCAPED[part[:2]] + part[2:] for part in escaped])
    except KeyError:
        raise RequestError(f"{name.decode()} has a broken percent escape") from None


def _only(query: bytes, wanted: bytes) -> bytes | None:
    values = [value for name, value in _pairs(query) if name == wanted]
    if len(values) > 1:
        raise RequestError(f"{wanted.decode()} is given twice")
    return _unquote(wanted, values[0]) if values else None


def _twenty_bytes(fields: Mapping[bytes, bytes], name: bytes) -> bytes:
    value = fields.get(name)
    if value is None:
        raise RequestError(f"{name.decode()} is missing")
    return _exactly_twenty(name, value)


def _exactly_twenty(name: bytes, value: bytes) -> bytes:
    if len(value) != 20:
        raise RequestError(f"{name.decode()} must be 20 bytes, not {len(value)}")
    return value


def _integer(fields: Mapping[bytes, bytes], name: bytes, low: int, high: int) -> int | None:
    value = fields.get(name)
    if not value:
        return None
    number = int(value) if _INTEGER.match(value) else None
    if number is None or not low <= number <= high:
        raise RequestError(f"{name.decode()} must be a whole number from {low} to {high}")
    return number


def _port(fields: Mapping[bytes, bytes]) -> int:
    port = _integer(fields, b"port", 0, 65535)
    if port is None:
        raise RequestError("port is missing")
    return port


def _numwant(fields: Mapping[bytes, bytes]) -> int | None:
    # Clients send -1 for "as many as you like to give".
    wanted = _integer(fields, b"numwant", -_MAX_LEFT, _MAX_LEFT)
    return None if wanted is None or wanted < 0 else wanted


def _seconds(value: bytes) -> float:
    if not _DECIMAL.match(value) or float(value) > MAX_PLAYHEAD_SECONDS:
        raise RequestError("playhead must be film seconds, written like 12.5")
    return float(value)
