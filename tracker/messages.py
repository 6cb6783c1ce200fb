"""What codec and state say to each other: requests, answers and peers, as plain facts."""

import enum
import ipaddress
from dataclasses import dataclass

__all__ = [
    "Announce",
    "AnnounceAnswer",
    "Event",
    "Peer",
    "SwarmCounts",
    "address_group",
    "is_loopback",
    "pack_address",
]


class Event(enum.Enum):
    """Why a client announces (BEP 3, "Trackers": `event`)."""

    NONE = b""
    STARTED = b"started"
    COMPLETED = b"completed"
    STOPPED = b"stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """One announce as the client sent it; what it did not send is None or the BEP's default.

    Attributes:
        info_hash: which swarm, 20 bytes.
        peer_id: the client's name for itself, 20 bytes.
        port: TCP port it listens on; 0 means that nobody can connect to it.
        left: bytes it still misses, or None if it does not know (0 = it has the whole film).
        event: why it announces.
        numwant: peers it would like, or None for our default.
        compact: BEP 23 answer (the default) or BEP 3 dictionaries (`compact=0`).
        no_peer_id: leave `peer id` out of the dictionaries.
        ip: the address it claims, packed (4 or 16 bytes); believed only from loopback.
        playhead: film position in seconds (our extension), or None.
    """

    info_hash: bytes
    peer_id: bytes
    port: int
    left: int | None = None
    event: Event = Event.NONE
    numwant: int | None = None
    compact: bool = True
    no_peer_id: bool = False
    ip: bytes | None = None
    playhead: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One member of a swarm as of one moment.

    Attributes:
        peer_id: 20 bytes.
        address: packed IPv4 (4 bytes) or IPv6 (16 bytes) address.
        port: TCP port, 1 to 65535.
        complete: it has the whole film.
        playhead: film position in seconds at that moment, or None if it never said.
    """

    peer_id: bytes
    address: bytes
    port: int
    complete: bool
    playhead: float | None = None


@dataclass(frozen=True, slots=True)
class SwarmCounts:
    """A swarm in three numbers (BEP 48): holders of the whole, others, completions ever seen."""

    complete: int = 0
    incomplete: int = 0
    downloaded: int = 0


@dataclass(frozen=True, slots=True)
class AnnounceAnswer:
    """What the state says to an announce.

    Attributes:
        counts: the swarm's.
        packed4: IPv4 endpoints of 6 bytes each, if a compact answer was asked for (BEP 23).
        packed6: IPv6 endpoints of 18 bytes each (BEP 7).
        peers: the same as facts, if a compact answer was not asked for.
    """

    counts: SwarmCounts
    packed4: bytes = b""
    packed6: bytes = b""
    peers: tuple[Peer, ...] = ()


def pack_address(text: str) -> bytes | None:
    """An IP address as 4 or 16 bytes in network order; None if the text is no usable address.

    An IPv4 address dressed as IPv6 (`::ffff:192.0.2.1`) is packed as what it is, and a zone
    (`fe80::1%eth0`) is dropped: it means nothing on another machine.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_unspecified or address.is_multicast:
        return None
    return address.packed


def is_loopback(address: bytes) -> bool:
    """Whether a packed address means the machine itself."""
    return address[0] == 127 if len(address) == 4 else address == b"\0" * 15 + b"\x01"


def address_group(address: bytes) -> bytes:
    """Whom limits per address count together: an IPv4 address, or an IPv6 /64 (one household)."""
    return address if len(address) == 4 else address[:8]
