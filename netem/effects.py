"""What a topology asks of a network, by name; what a backend cannot do is refused. Pure.

A lab that quietly emulates nothing is worse than none.
"""

from enum import StrEnum

from netem.topology import Topology

__all__ = ["Effect", "asked_effects"]


class Effect(StrEnum):
    """One thing that can happen to a packet."""

    DELAY = "delay"
    JITTER = "jitter"
    LOSS = "loss"
    RATE = "rate"
    DOWNLOAD = "download"
    LOOPBACK = "loopback"


def asked_effects(topology: Topology) -> frozenset[Effect]:
    """All effects that at least one class with a host asks for."""
    asked = {Effect.LOOPBACK} if topology.loopback else set()
    used = {host.latency_class for host in topology.hosts}
    for each in topology.classes:
        if each.name in used:
            wanted = {
                Effect.DELAY: each.delay_seconds > 0,
                Effect.JITTER: each.jitter_seconds > 0,
                Effect.LOSS: each.loss > 0,
                Effect.RATE: each.rate is not None,
                Effect.DOWNLOAD: each.download is not None,
            }
            asked |= {effect for effect, is_wanted in wanted.items() if is_wanted}
    return frozenset(asked)
