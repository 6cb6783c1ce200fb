"""A network that shall run: a topology, and what else decides how it behaves. Pure."""

import json
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from typing import Any, Final

from netem.distributions import Distribution
from netem.topology import GilbertElliott, Host, LatencyClass, Topology, Ways

__all__ = ["MTU_BYTES", "PREFIX_BITS", "NetworkSpec"]

MTU_BYTES: Final = 1500
PREFIX_BITS: Final = 15
_FIRST: Final = int(IPv4Address("198.18.0.0"))
"""The block set aside for testing networks (RFC 2544, appendix C.2.2): it is nobody's."""
_HOSTS_PER_NET: Final = 250


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """What a backend is asked to run.

    Attributes:
        topology: hosts and what happens between them.
        seed: of all chance in it; None if it does not matter.
        congestion_control: TCP's, pinned in every host; None pins what the machine has by default.
        lifeline: whether the network ends when the standard input of its keeper does.
    """

    topology: Topology
    seed: int | None = None
    congestion_control: str | None = None
    lifeline: bool = True

    @property
    def chance_seed(self) -> int:
        """The seed to use: its own, or the topology's, or 0."""
        return next((s for s in (self.seed, self.topology.seed) if s is not None), 0)

    def addresses(self) -> dict[str, str]:
        """The IPv4 address of each host, by its name."""
        return {
            host.name: str(
                IPv4Address(_FIRST + (at // _HOSTS_PER_NET) * 256 + at % _HOSTS_PER_NET + 1)
            )
            for at, host in enumerate(self.topology.hosts)
        }

    def to_json(self) -> str:
        """One line that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "NetworkSpec":
        """Read what `to_json` wrote."""
        value = json.loads(text)
        topology = value.pop("topology")
        return cls(
            topology=Topology(
                name=topology["name"],
                classes=tuple(_latency_class(each) for each in topology["classes"]),
                hosts=tuple(Host(**each) for each in topology["hosts"]),
                loopback=topology["loopback"],
                seed=topology["seed"],
            ),
            **value,
        )


def _latency_class(value: dict[str, Any]) -> LatencyClass:
    bursts = value["bursts"]
    read = {
        "distribution": Distribution(value["distribution"]),
        "ways": Ways(value["ways"]),
        "bursts": None if bursts is None else GilbertElliott(**bursts),
    }
    return LatencyClass(**{**value, **read})
