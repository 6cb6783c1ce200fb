"""Who sits where in an emulated network: hosts, and the latency class of each. Pure.

A latency class says what happens to everything that its hosts *send*, as NetEm does it on the
sender's side (tc-netem(8)). A round trip between two hosts therefore pays the delay of both. With
`ways = "both"` the same happens, but for the rate, to all that reaches them. With `loopback = true`
a host's packets to itself are treated so as well, as in the source's experiments; then it reaches
itself in twice its own delay.

A topology is a TOML file (`netem.topology_text` reads it)::

    name = "town and country"

    [classes.town]
    delay = "1ms"

    [classes.country]
    delay = "20ms"
    jitter = "4ms"
    loss = 0.01
    rate = "10Mbps"
    download = "50Mbps"
    queue = "80ms"

    [[hosts]]
    name = "server"
    class = "town"

    [[hosts]]
    name = "viewer"
    class = "country"
    count = 8
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from netem.distributions import Distribution
from netem.errors import TopologyError

__all__ = [
    "MAX_DELAY_SECONDS",
    "MAX_HOSTS",
    "MOST_WAITING_PACKETS",
    "GilbertElliott",
    "Host",
    "LatencyClass",
    "Path",
    "Topology",
    "Ways",
]

MAX_HOSTS: Final = 10_000
MAX_CLASSES: Final = 100
MAX_DELAY_SECONDS: Final = 10.0
"""No link on Earth is slower than a second; ten is surely a unit mistaken."""
MOST_WAITING_PACKETS: Final = 100_000
"""The source's own `limit`. NetEm's default of 1000 drops at video rates over long delays."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


class Ways(StrEnum):
    """Which packets of a host a class is about."""

    SEND = "send"
    """What it sends."""
    BOTH = "both"
    """What it sends, and what reaches it."""


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Loss in bursts: a chain of two states, each with a loss of its own.

    The model of Gilbert (1960) and Elliott (1963), as `loss gemodel` of tc-netem(8) has it: for
    each packet the state may change, and its loss is decided by the state that it found.

    Attributes:
        enter: probability of going from good to bad.
        leave: probability of going back.
        bad: share lost in the bad state.
        good: share lost in the good state.
    """

    enter: float
    leave: float
    bad: float = 1.0
    good: float = 0.0

    @property
    def mean(self) -> float:
        """Share of packets lost in the long run."""
        in_bad = self.enter / (self.enter + self.leave)
        return in_bad * self.bad + (1.0 - in_bad) * self.good

    @property
    def inflation(self) -> float:
        """Variance of a count of losses over that of independent losses as frequent.

        The states of two packets k apart correlate by (1 - enter - leave)^k.
        """
        mean = self.mean
        if not 0.0 < mean < 1.0:
            return 1.0
        in_bad = self.enter / (self.enter + self.leave)
        of_states = in_bad * (1.0 - in_bad) * (self.bad - self.good) ** 2
        memory = 1.0 - self.enter - self.leave
        return max(1.0, 1.0 + 2.0 * of_states / (mean * (1 - mean)) * memory / (1.0 - memory))


@dataclass(frozen=True, slots=True)
class LatencyClass:
    """What happens to everything that a host of this class sends.

    Attributes:
        name: unique in its topology.
        delay_seconds: mean one-way delay.
        jitter_seconds: of a uniform distribution the largest deviation from it, either way, and
            not above the delay; of the others the standard deviation.
        loss: fraction of packets lost, independently, in [0, 1).
        rate: bytes per second that leave the host at most, or None for no limit.
        download: bytes per second that reach the host at most, or None for no limit.
        queue_seconds: longest wait for one's turn at a limited rate; who would wait longer is
            dropped. The buffer of the box at the bottleneck, as time.
        distribution: of the jitter.
        correlation: how much of a packet's deviation is that of the packet before it, in [0, 1).
        bursts: loss in bursts instead of `loss`, or None.
        duplicate: fraction of packets that come twice.
        corrupt: fraction of packets in which one bit is flipped.
        reorder: fraction of packets that are not delayed, and so overtake the others.
        reorder_gap: with `reorder`, only every so manieth packet can be one of those.
        limit_packets: most packets on their way out at once; who comes then is dropped.
        ways: whether all but the rate also happens to what reaches the host.

    Raises:
        TopologyError: a value out of range.
    """

    name: str
    delay_seconds: float = 0.0
    jitter_seconds: float = 0.0
    loss: float = 0.0
    rate: float | None = None
    download: float | None = None
    queue_seconds: float = 0.1
    distribution: Distribution = Distribution.UNIFORM
    correlation: float = 0.0
    bursts: GilbertElliott | None = None
    duplicate: float = 0.0
    corrupt: float = 0.0
    reorder: float = 0.0
    reorder_gap: int = 1
    limit_packets: int = MOST_WAITING_PACKETS
    ways: Ways = Ways.SEND

    def __post_init__(self) -> None:
        _check_name(self.name, f"classes.{self.name}")
        # Written so that NaN is refused, too.
        if not 0.0 <= self.delay_seconds <= MAX_DELAY_SECONDS:
            self._refuse("delay", f"must be 0 to {MAX_DELAY_SECONDS:g} s")
        if not 0.0 <= self.jitter_seconds <= self.delay_seconds:
            self._refuse("jitter", "must not be longer than the delay: nothing arrives early")
        for field in ("loss", "duplicate", "corrupt", "reorder", "correlation"):
            if not 0.0 <= getattr(self, field) < 1.0:
                self._refuse(field, "must be a fraction from 0 to below 1, such as 0.01 for 1 %")
        if self.bursts is not None:
            self._check_bursts(self.bursts)
        self._check_chance()
        for field, rate in (("rate", self.rate), ("download", self.download)):
            if rate is not None and not 0.0 < rate < float("inf"):
                self._refuse(field, "must be above 0; leave it out for no limit")
        if not 0.0 <= self.queue_seconds <= MAX_DELAY_SECONDS:
            self._refuse("queue", f"must be 0 to {MAX_DELAY_SECONDS:g} s")
        if not 1 <= self.limit_packets <= 10_000_000:
            self._refuse("limit", "must be a whole number of packets, from 1 to ten million")

    def _check_chance(self) -> None:
        if self.correlation and not self.jitter_seconds:
            self._refuse("correlation", "is of the jitter, and there is none")
        if self.distribution is not Distribution.UNIFORM and not self.jitter_seconds:
            self._refuse("distribution", "is of the jitter, and there is none")
        if self.reorder and not self.delay_seconds:
            self._refuse("reorder", "needs a delay: who is not delayed overtakes the others")
        if not 1 <= self.reorder_gap <= 1_000_000:
            self._refuse("reorder_gap", "must be a whole number from 1 to a million")
        if self.reorder_gap > 1 and not self.reorder:
            self._refuse("reorder_gap", "is of reorder, and there is none")

    def _check_bursts(self, bursts: GilbertElliott) -> None:
        for field in ("enter", "leave"):
            if not 0.0 < getattr(bursts, field) <= 1.0:
                self._refuse(f"loss.{field}", "must be above 0 and at most 1")
        for field in ("bad", "good"):
            if not 0.0 <= getattr(bursts, field) <= 1.0:
                self._refuse(f"loss.{field}", "must be a fraction from 0 to 1")
        if self.loss:
            self._refuse("loss", "is either a fraction or in bursts, not both")
        if bursts.mean >= 1.0:
            self._refuse("loss", "loses everything")

    @property
    def mean_loss(self) -> float:
        """Share of the packets that it sends which are lost in the long run."""
        return self.loss if self.bursts is None else self.bursts.mean

    def _refuse(self, field: str, rule: str) -> None:
        raise TopologyError(f"classes.{self.name}.{field} {rule}")


@dataclass(frozen=True, slots=True)
class Host:
    """One machine of the emulated network.

    Attributes:
        name: unique in its topology, and fit for a host name (RFC 1123, section 2.1).
        latency_class: name of its class.
    """

    name: str
    latency_class: str

    def __post_init__(self) -> None:
        _check_name(self.name, f"hosts '{self.name}'.name")


@dataclass(frozen=True, slots=True)
class Path:
    """The way from a host of one class to a host of another and back.

    Attributes:
        round_trip_seconds: mean round-trip time.
        jitter_seconds: largest deviation from it, either way.
        loss: fraction of round trips that lose a packet on the way there or back.
        rate: bytes per second there at most (what the sender may send and the receiver take), or
            None.
    """

    round_trip_seconds: float
    jitter_seconds: float
    loss: float
    rate: float | None


@dataclass(frozen=True, slots=True)
class Topology:
    """A network, checked as a whole.

    Attributes:
        name: for people.
        classes: at most `MAX_CLASSES`.
        hosts: at most `MAX_HOSTS`.
        loopback: whether a host's packets to itself are treated like all others that it sends.
        seed: of all chance in it, so that the same packets are lost in every run; None if that
            does not matter.

    Raises:
        TopologyError: two of one name, a host of an unknown class, nothing at all, or too much.
    """

    name: str
    classes: tuple[LatencyClass, ...]
    hosts: tuple[Host, ...]
    loopback: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed < 1 << 63:
            raise TopologyError("seed must be a whole number, 0 or above")
        if not self.classes:
            raise TopologyError("classes: a topology needs at least one")
        if not self.hosts:
            raise TopologyError("hosts: a topology needs at least one")
        if len(self.classes) > MAX_CLASSES:
            raise TopologyError(f"classes: at most {MAX_CLASSES}, not {len(self.classes)}")
        if len(self.hosts) > MAX_HOSTS:
            raise TopologyError(f"hosts: at most {MAX_HOSTS}, not {len(self.hosts)}")
        known = {latency_class.name for latency_class in self.classes}
        if len(known) < len(self.classes):
            raise TopologyError("classes: two have the same name")
        seen: set[str] = set()
        for host in self.hosts:
            if host.name in seen:
                raise TopologyError(f"hosts '{host.name}'.name is taken by another host")
            seen.add(host.name)
            if host.latency_class not in known:
                raise TopologyError(
                    f"hosts '{host.name}'.class '{host.latency_class}' is none of "
                    + ", ".join(sorted(known))
                )

    def latency_class(self, name: str) -> LatencyClass:
        """The class of that name.

        Raises:
            TopologyError: there is none.
        """
        for latency_class in self.classes:
            if latency_class.name == name:
                return latency_class
        raise TopologyError(f"classes.{name}: there is no such class")

    def hosts_in(self, class_name: str) -> tuple[Host, ...]:
        """All hosts of one class, in the order of the file."""
        return tuple(host for host in self.hosts if host.latency_class == class_name)

    def path(self, sender: str, receiver: str) -> Path:
        """What lies between a host of one class and a host of another (or the same).

        Raises:
            TopologyError: there is no such class.
        """
        there, back = self.latency_class(sender), self.latency_class(receiver)
        ways = [(each, 2 if each.ways is Ways.BOTH else 1) for each in (there, back)]
        kept = (1.0 - there.mean_loss) * (1.0 - back.mean_loss)
        for each, times in ways:
            kept *= (1.0 - each.mean_loss) ** (times - 1)
        return Path(
            round_trip_seconds=sum(each.delay_seconds * times for each, times in ways),
            jitter_seconds=sum(each.jitter_seconds * times for each, times in ways),
            loss=1.0 - kept,
            rate=min((r for r in (there.rate, back.download) if r is not None), default=None),
        )


def _check_name(name: str, where: str) -> None:
    if not _NAME.match(name):
        raise TopologyError(f"{where} must be lower-case letters, digits and inner hyphens")
