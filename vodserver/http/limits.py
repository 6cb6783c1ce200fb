"""What one client may have of the server: how many connections from one address, and how long.

Pure. An IPv6 client commands a whole /64 (RFC 4291, 2.5.4), so that is what counts as one address.
"""

import ipaddress
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["AddressLimit", "Timeouts", "client_network"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long clients may dawdle, in seconds.

    Attributes:
        header_seconds: a new connection must have asked something whole by then.
        keepalive_seconds: between two requests.
        send_seconds: without taking any of what waits for it.
    """

    header_seconds: float
    keepalive_seconds: float
    send_seconds: float


@lru_cache(maxsize=4096)  # asked when a client comes and when it goes, and many come again
def client_network(address: str) -> str:
    """What is counted as one client: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


class AddressLimit:
    """Counts connections by client.

    Args:
        most: connections of one client at a time; None for no limit.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._open: Counter[str] = Counter()
        self.refused = 0
        """Connections that were one too many of their client."""

    def enter(self, address: str) -> bool:
        """Count a connection in; False, and not counted, if its client has as many as it may."""
        client = client_network(address)
        if self._most is not None and self._open[client] >= self._most:
            self.refused += 1
            return False
        self._open[client] += 1
        return True

    def leave(self, address: str) -> None:
        """Count a connection out that was counted in."""
        client = client_network(address)
        self._open[client] -= 1
        if self._open[client] <= 0:  # or strangers' addresses would be kept for ever
            del self._open[client]

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return len(self._open)
