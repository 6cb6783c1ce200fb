"""Every number of the tracker that an operator may want to change, and why it is what it is."""

import math
from dataclasses import dataclass

from toast.common.errors import UsageError

__all__ = ["TrackerSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSettings:
    """The settings of one tracker.

    Raises:
        UsageError: a value with which no tracker could work; the message names the setting.
    """

    host: str = "127.0.0.1"
    """Address to listen on; `*` is all of this machine's, IPv4 and IPv6. Loopback, until the
    operator decides that strangers may announce."""

    port: int = 6969
    """TCP and UDP port; 0 takes any free one."""

    udp: bool = True
    """Answer on UDP, too (BEP 15): an announce costs a quarter of the bytes and of the work."""

    interval_seconds: float = 30.0
    """How often clients announce. BEP 3 trackers say 1800, which suits downloads of hours: a viewer
    who pressed play must be found within seconds, and a film lasts only a few such intervals."""

    min_interval_seconds: float = 5.0
    """How soon a client that runs out of peers may announce again."""

    expiry_intervals: float = 2.5
    """A peer unheard of for so many intervals is gone: two announces may be lost, three not."""

    snapshot_seconds: float = 30.0
    """How often the memory is written down, where there is a file for it. What is lost by a crash
    comes back within an interval by itself."""

    share_seconds: float = 0.25
    """How often news go to other trackers of the same swarms, where there are any."""

    default_numwant: int = 50
    """Peers in an answer when the client does not say how many; the number BEP 3 names."""

    max_numwant: int = 200
    """Most peers in an answer: about 17 kB in the dictionary form, 1.3 kB in the compact one."""

    max_scrape_hashes: int = 50
    """Most info-hashes in one scrape."""

    max_query_bytes: int = 4096
    """Longest query string that is read: an announce needs 400, a full scrape 3600."""

    max_peers: int = 100_000
    """Most peers remembered, all swarms together: about 20 MB."""

    max_peers_per_torrent: int = 10_000
    """Most peers remembered in one swarm."""

    max_peers_per_address: int = 64
    """Most peers remembered per IPv4 address or IPv6 /64, all swarms together. Loopback is exempt:
    whoever sits there owns the machine, and a laboratory runs hundreds of viewers on it."""

    max_requests_per_address: int = 500
    """Most requests answered per IPv4 address or IPv6 /64 in a sixth of a minute, over HTTP and UDP
    together: eight times what a full address asks in a hurry. Loopback is exempt."""

    max_torrents: int = 10_000
    """Most swarms remembered."""

    max_offers: int = 10
    """Most offers of one browser's announce that are passed on; clients make five to ten."""

    max_swarms_per_browser: int = 20
    """Most swarms in which one WebSocket is."""

    max_browser_message_bytes: int = 65_536
    """Longest message of a browser: ten offers of 4 kB, and to spare."""

    max_connections: int = 512
    """Most open connections; the usual limit of open files is 1024."""

    max_connections_per_address: int = 32
    """Most open connections per IPv4 address or IPv6 /64; loopback is exempt."""

    idle_timeout_seconds: float = 15.0
    """A connection to which nothing could be answered for so long is closed, however slowly its
    client goes on sending."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise UsageError(f"port {self.port} is not between 0 and 65535")
        for name in _TIMES:
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 < value <= 86_400):
                raise UsageError(f"{name} must be above 0 and at most a day, not {value}")
        if self.min_interval_seconds > self.interval_seconds:
            raise UsageError("min_interval_seconds must not be longer than interval_seconds")
        if not 1 <= self.expiry_intervals <= 100:
            raise UsageError(f"expiry_intervals must be 1 to 100, not {self.expiry_intervals}")
        if not 0 <= self.default_numwant <= self.max_numwant:
            raise UsageError("default_numwant must be 0 to max_numwant")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")

    @property
    def expiry_seconds(self) -> float:
        """Seconds after its last announce at which a peer is forgotten."""
        return self.expiry_intervals * self.interval_seconds


_TIMES = (
    "interval_seconds",
    "min_interval_seconds",
    "idle_timeout_seconds",
    "snapshot_seconds",
    "share_seconds",
)
_COUNTS = (
    "max_scrape_hashes",
    "max_query_bytes",
    "max_peers",
    "max_peers_per_torrent",
    "max_peers_per_address",
    "max_requests_per_address",
    "max_torrents",
    "max_offers",
    "max_swarms_per_browser",
    "max_browser_message_bytes",
    "max_connections",
    "max_connections_per_address",
)
