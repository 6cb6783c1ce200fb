"""What two hosts should see of each other, reckoned with the engine that shapes packets. Pure.

A topology's numbers do not say how often packets overtake one another, or how round trips spread:
that follows from delay, jitter and how packets are spaced. So it is tried here, without a network.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from netem.shaper import Shaper
from netem.topology import Topology

__all__ = ["Arrivals", "count", "round_trips", "stream"]

_ECHO_BYTES: Final = 28


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What came of a stream of numbered packets.

    Attributes:
        sent: packets sent.
        arrived: different ones that arrived.
        duplicates: further copies of those.
        reordered: those that came after one with a higher number (RFC 4737, section 3.3).
        corrupted: those that were not as they were sent.
    """

    sent: int
    arrived: int
    duplicates: int
    reordered: int
    corrupted: int

    @property
    def lost(self) -> int:
        """Packets of which no copy came."""
        return self.sent - self.arrived


def count(sent: int, numbers: Sequence[int], corrupted: int = 0) -> Arrivals:
    """Arrivals from the numbers of packets in the order in which they came."""
    seen: set[int] = set()
    highest = -1
    reordered = 0
    for number in numbers:
        if number not in seen and number < highest:
            reordered += 1
        seen.add(number)
        highest = max(highest, number)
    return Arrivals(sent, len(seen), len(numbers) - len(seen), reordered, corrupted)


_Copy = tuple[float, int, bool]
"""When a packet is somewhere, its number, and whether it is corrupt."""


class _Way:
    """From a host of one class to a host of another."""

    def __init__(self, topology: Topology, sender: str, receiver: str, rng: random.Random) -> None:
        receiving = Shaper.receiving(topology.latency_class(receiver), rng)
        sending = Shaper.sending(topology.latency_class(sender), rng)
        self._shapers = [sending] if receiving is None else [sending, receiving]

    def arrive(self, packets: Iterable[tuple[float, int]], size: int) -> list[_Copy]:
        """When copies of packets arrive, in the order in which they do.

        Args:
            packets: when each is sent, rising, and its number.
            size: bytes of each, IP header included.
        """
        copies: list[_Copy] = [(at, number, False) for at, number in packets]
        for shaper in self._shapers:
            copies = sorted(
                (fate.due, number, is_corrupt or fate.flip is not None)
                for at, number, is_corrupt in copies
                for fate in shaper.fates(at, size)
            )
        return copies


def round_trips(
    topology: Topology, sender: str, receiver: str, *, trips: int, rng: random.Random
) -> list[float]:
    """Seconds of so many round trips with nothing else on the way; the lost ones are left out.

    Args:
        topology: the network.
        sender: class of the host that asks.
        receiver: class of the one that answers.
        trips: how many.
        rng: all chance.
    """
    there, back = _Way(topology, sender, receiver, rng), _Way(topology, receiver, sender, rng)
    # A hundred seconds apart: nobody waits for the one before.
    asked = there.arrive([(number * 100.0, number) for number in range(trips)], _ECHO_BYTES)
    answers = back.arrive([(at, number) for at, number, _ in asked], _ECHO_BYTES)
    return [at - number * 100.0 for at, number, _ in answers]


def stream(
    topology: Topology,
    sender: str,
    receiver: str,
    *,
    packets: int,
    interval_seconds: float,
    size: int,
    rng: random.Random,
) -> Arrivals:
    """What comes of packets of one size, sent evenly.

    Args:
        topology: the network.
        sender: class of the host that sends.
        receiver: class of the one that takes.
        packets: how many.
        interval_seconds: from one to the next.
        size: bytes, IP header included.
        rng: all chance.
    """
    way = _Way(topology, sender, receiver, rng)
    came = way.arrive([(n * interval_seconds, n) for n in range(packets)], size)
    corrupted = sum(is_corrupt for _, _, is_corrupt in came)
    return count(packets, [number for _, number, _ in came], corrupted)
