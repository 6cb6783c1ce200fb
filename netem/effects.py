"""What a topology asks of a network, by name; what a backend cannot do is refused. Pure.

A lab that quietly emulates nothing is worse than none.
"""

from enum import StrEnum

from netem.distributions import Distribution
from netem.topology import MOST_WAITING_PACKETS, Topology, Ways

__all__ = ["Effect", "asked_effects"]


class Effect(StrEnum):
    """One thing that can happen to a packet."""

    DELAY = "delay"
    JITTER = "jitter"
    DISTRIBUTION = "distribution"
    CORRELATION = "correlation"
    LOSS = "loss"
    BURSTS = "loss in bursts"
    DUPLICATE = "duplicate"
    CORRUPT = "corrupt"
    REORDER = "reorder"
    RATE = "rate"
    DOWNLOAD = "download"
    LIMIT = "limit"
    BOTH_WAYS = "ways = 'both'"
    LOOPBACK = "loopback"
    SEED = "seed"
    """The same packets meet the same fate in every run."""


def asked_effects(topology: Topology, seed: int | None = None) -> frozenset[Effect]:
    """All effects that at least one class with a host asks for.

    Args:
        topology: the network.
        seed: of all chance, if it is given beside the topology.
    """
    asked = {Effect.LOOPBACK} if topology.loopback else set()
    if seed is not None or topology.seed is not None:
        asked.add(Effect.SEED)
    used = {host.latency_class for host in topology.hosts}
    for each in topology.classes:
        if each.name in used:
            wanted = {
                Effect.DELAY: each.delay_seconds > 0,
                Effect.JITTER: each.jitter_seconds > 0,
                Effect.DISTRIBUTION: each.distribution is not Distribution.UNIFORM,
                Effect.CORRELATION: each.correlation > 0,
                Effect.LOSS: each.loss > 0,
                Effect.BURSTS: each.bursts is not None,
                Effect.DUPLICATE: each.duplicate > 0,
                Effect.CORRUPT: each.corrupt > 0,
                Effect.REORDER: each.reorder > 0,
                Effect.RATE: each.rate is not None,
                Effect.DOWNLOAD: each.download is not None,
                Effect.LIMIT: each.limit_packets != MOST_WAITING_PACKETS,
                Effect.BOTH_WAYS: each.ways is Ways.BOTH,
            }
            asked |= {effect for effect, is_wanted in wanted.items() if is_wanted}
    return frozenset(asked)
