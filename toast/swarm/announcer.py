"""Our own announces to HTTP trackers: they tell where we are in the film and who is just ahead.

BEP 3 with the dictionary form of the answer (`compact=0`), which carries peer ids: those of the
operator's seed begin with -TV. A tracker that knows the `playhead` parameter answers with the
playheads of others; any other tracker ignores it. Compact answers (BEP 23, BEP 7) are read too.
"""

import asyncio
import ipaddress
import socket
import struct
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
import bencode2
from yarl import URL

from toast.swarm.errors import SwarmError
from toast.swarm.facts import OPERATOR_PREFIX

__all__ = ["Announcement", "Announcer", "Peer"]

_MAX_ANSWER_BYTES = 256 * 1024
_MAX_PEERS = 500
_LOOKUP_SECONDS = 3.0
_TIMEOUT = aiohttp.ClientTimeout(total=10.0, connect=3.0)
_DEFAULT_INTERVAL, _LEAST_INTERVAL, _MOST_INTERVAL = 60.0, 2.0, 1800.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that a tracker named.

    Attributes:
        address: where it listens.
        playhead: where in the film it was when the tracker answered, in seconds, if known.
        complete: whether it said that it has the whole film.
        operator: whether it is the operator's seed.
    """

    address: tuple[str, int]
    playhead: float | None = None
    complete: bool = False
    operator: bool = False


@dataclass(frozen=True, slots=True)
class Announcement:
    """A tracker's answer: how long to wait until the next announce (seconds), and peers."""

    interval: float
    least_interval: float
    peers: tuple[Peer, ...]


class Announcer:
    """Announces one film to one HTTP tracker.

    A tracker knows us by the address that we call from. To be known under an IPv4 and an IPv6 one,
    announce over each (BEP 7).

    Args:
        http: the session to use; the caller closes it.
        url: the announce URL.
        info_hash: 20 bytes.
        peer_id: 20 bytes.
        port: where peers can reach us.
        family: call over this one alone; None: whichever answers first.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        *,
        info_hash: bytes,
        peer_id: bytes,
        port: int,
        family: socket.AddressFamily | None = None,
    ) -> None:
        self._http = http
        self._url = url
        self._family = family
        self._fixed = (
            f"info_hash={quote(info_hash, safe='')}&peer_id={quote(peer_id, safe='')}&port={port}"
        )
        self._own_port = port

    async def announce(
        self,
        *,
        uploaded: int,
        downloaded: int,
        left: int,
        playhead: float | None,
        event: str = "",
        want: int = 50,
    ) -> Announcement:
        """Tell the tracker where we stand, and ask for peers.

        Raises:
            SwarmError: the tracker is unreachable, refuses, or answers nonsense.
        """
        query = (
            f"{self._fixed}&uploaded={uploaded}&downloaded={downloaded}&left={left}"
            f"&compact=0&numwant={want}"
        )
        if playhead is not None:
            query += f"&playhead={playhead:.3f}"
        if event:
            query += f"&event={event}"
        url = f"{self._url}{'&' if '?' in self._url else '?'}{query}"
        try:
            # aiohttp would decode and re-encode the hash's bytes: hand it over as it is.
            target = URL(url, encoded=True)
            where: dict[str, Any] = {}
            if self._family is not None:
                target, where = await _by_family(target, self._family)
            async with self._http.get(target, timeout=_TIMEOUT, **where) as answer:
                body = await answer.content.read(_MAX_ANSWER_BYTES + 1)
                while len(body) <= _MAX_ANSWER_BYTES and (
                    more := await answer.content.read(_MAX_ANSWER_BYTES + 1 - len(body))
                ):
                    body += more
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RuntimeError) as error:
            # (RuntimeError: an event loop that has lost track of one of its sockets.)
            reason = str(error) or type(error).__name__
            raise SwarmError(f"tracker {self._url} cannot be reached: {reason}") from error
        if len(body) > _MAX_ANSWER_BYTES:
            raise SwarmError(f"tracker {self._url} sends more than any answer has")
        return parse_answer(body, url=self._url)


async def _by_family(url: URL, family: socket.AddressFamily) -> tuple[URL, dict[str, Any]]:
    """The same URL at an address of this family, and what a request for it needs besides.

    Raises:
        OSError: it has none.
    """
    host = url.raw_host or ""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_LOOKUP_SECONDS):
        found = await loop.getaddrinfo(
            host, url.port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
    named: dict[str, Any] = {"headers": {"Host": url.raw_authority}}
    if url.scheme == "https":
        named["server_hostname"] = host
    return url.with_host(str(found[0][4][0])), named


def parse_answer(body: bytes, *, url: str = "tracker") -> Announcement:
    """Read a tracker's answer, in any of the forms of BEP 3, 7 and 23.

    Raises:
        SwarmError: it is a failure, or no answer at all.
    """
    try:
        answer = bencode2.bdecode(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise SwarmError(f"{url} does not answer like a tracker") from error
    if not isinstance(answer, dict):
        raise SwarmError(f"{url} does not answer like a tracker")
    failure = answer.get(b"failure reason")
    if isinstance(failure, bytes):
        raise SwarmError(f"{url} refuses: {failure[:200].decode('utf-8', 'replace')}")
    peers = [*_peers(answer.get(b"peers")), *_compact(answer.get(b"peers6"), 16)]
    least = _seconds(answer.get(b"min interval"), _LEAST_INTERVAL)
    return Announcement(
        interval=max(least, _seconds(answer.get(b"interval"), _DEFAULT_INTERVAL)),
        least_interval=least,
        peers=tuple(peers[:_MAX_PEERS]),
    )


def _seconds(value: Any, default: float) -> float:
    if not isinstance(value, int):
        return default
    return float(min(max(value, _LEAST_INTERVAL), _MOST_INTERVAL))


def _peers(value: Any) -> list[Peer]:
    if isinstance(value, bytes):
        return _compact(value, 4)
    if not isinstance(value, list):
        return []
    peers = (_peer(item) for item in value[:_MAX_PEERS] if isinstance(item, dict))
    return [peer for peer in peers if peer is not None]


def _peer(item: dict[Any, Any]) -> Peer | None:
    host, port = item.get(b"ip"), item.get(b"port")
    if not isinstance(host, bytes) or not isinstance(port, int) or not 0 < port < 65536:
        return None
    try:
        address = str(ipaddress.ip_address(host.decode("ascii")))
    except (ValueError, UnicodeDecodeError):
        return None  # a name would have us look up what a stranger chose
    playhead, peer_id = item.get(b"playhead"), item.get(b"peer id")
    return Peer(
        address=(address, port),
        playhead=playhead / 1000 if isinstance(playhead, int) and 0 <= playhead < 1 << 40 else None,
        complete=item.get(b"complete") == 1,
        operator=isinstance(peer_id, bytes) and peer_id.startswith(OPERATOR_PREFIX),
    )


def _compact(value: Any, address_bytes: int) -> list[Peer]:
    if not isinstance(value, bytes):
        return []
    step = address_bytes + 2
    peers = []
    for start in range(0, min(len(value), _MAX_PEERS * step) - step + 1, step):
        host = ipaddress.ip_address(value[start : start + address_bytes])
        (port,) = struct.unpack_from(">H", value, start + address_bytes)
        if port:
            peers.append(Peer((str(host), port)))
    return peers
