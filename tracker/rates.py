"""How much one address may ask. Pure: time comes in as an argument."""

from typing import Final

from tracker.swarm import group_of

__all__ = ["PERIOD_SECONDS", "RequestRates"]

PERIOD_SECONDS: Final = 10.0
_MOST_GROUPS: Final = 1_000_000


class RequestRates:
    """Counts requests per address, in periods of ten seconds.

    Only those who have shown that they receive what is sent to their address are counted (a TCP
    connection, a UDP connection id), so that nobody can use up another's share.

    Args:
        most: requests of one IPv4 address or IPv6 /64 in one period.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[int, int] = {}
        self._ends = 0.0

    def admit(self, family: int, key: int, now: float) -> bool:
        """Count one request of an endpoint (`tracker.swarm.family_of`, key); False: too many.

        Loopback is always admitted: whoever sits there owns the machine.
        """
        if now >= self._ends or len(self._counts) > _MOST_GROUPS:
            self._counts.clear()
            self._ends = now + PERIOD_SECONDS
        group = key >> 16 if family == 0 else group_of(family, key)
        counts = self._counts
        count = counts[group] = counts.get(group, 0) + 1
        return count <= self._most or family > 1
