"""Who sits where in an emulated network: hosts, and the latency class of each. Pure.

A latency class says what happens to everything that its hosts *send*, as NetEm does it on the
sender's side (tc-netem(8)). A round trip between two hosts therefore pays the delay of both. With
`loopback = true` a host's packets to itself are treated so as well, as in the source's experiments;
then it reaches itself in twice its own delay. `download` is the one thing that happens on the way
in.

A topology is a TOML file::

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
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from netem.errors import TopologyError
from toast.common.errors import UsageError
from toast.common.units import parse_rate, parse_seconds

__all__ = ["MAX_DELAY_SECONDS", "MAX_HOSTS", "Host", "LatencyClass", "Path", "Topology"]

MAX_HOSTS: Final = 10_000
MAX_CLASSES: Final = 100
MAX_DELAY_SECONDS: Final = 10.0
"""No link on Earth is slower than a second; ten is surely a unit mistaken."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class LatencyClass:
    """What happens to everything that a host of this class sends.

    Attributes:
        name: unique in its topology.
        delay_seconds: mean one-way delay.
        jitter_seconds: largest deviation from it, either way; not above the delay.
        loss: fraction of packets lost, independently, in [0, 1).
        rate: bytes per second that leave the host at most, or None for no limit.
        download: bytes per second that reach the host at most, or None for no limit.
        queue_seconds: longest wait for one's turn at a limited rate; who would wait longer is
            dropped. The buffer of the box at the bottleneck, as time.

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

    def __post_init__(self) -> None:
        _check_name(self.name, f"classes.{self.name}")
        # Written so that NaN is refused, too.
        if not 0.0 <= self.delay_seconds <= MAX_DELAY_SECONDS:
            self._refuse("delay", f"must be 0 to {MAX_DELAY_SECONDS:g} s")
        if not 0.0 <= self.jitter_seconds <= self.delay_seconds:
            self._refuse("jitter", "must not be longer than the delay: nothing arrives early")
        if not 0.0 <= self.loss < 1.0:
            self._refuse("loss", "must be a fraction from 0 to below 1, such as 0.01 for 1 %")
        for field, rate in (("rate", self.rate), ("download", self.download)):
            if rate is not None and not 0.0 < rate < float("inf"):
                self._refuse(field, "must be above 0; leave it out for no limit")
        if not 0.0 <= self.queue_seconds <= MAX_DELAY_SECONDS:
            self._refuse("queue", f"must be 0 to {MAX_DELAY_SECONDS:g} s")

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

    Raises:
        TopologyError: two of one name, a host of an unknown class, nothing at all, or too much.
    """

    name: str
    classes: tuple[LatencyClass, ...]
    hosts: tuple[Host, ...]
    loopback: bool = False

    def __post_init__(self) -> None:
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
        return Path(
            round_trip_seconds=there.delay_seconds + back.delay_seconds,
            jitter_seconds=there.jitter_seconds + back.jitter_seconds,
            loss=1.0 - (1.0 - there.loss) * (1.0 - back.loss),
            rate=min((r for r in (there.rate, back.download) if r is not None), default=None),
        )

    @classmethod
    def from_toml(cls, text: str) -> "Topology":
        """Read the format shown at the head of this module.

        Raises:
            TopologyError: it is no TOML, or a field is missing, unknown or out of range.
        """
        try:
            table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TopologyError(f"the file is not TOML: {error}") from error
        _only(table, "", {"name", "classes", "hosts", "loopback"})
        classes = _typed(table, "classes", dict, "")
        hosts: list[Host] = []
        for number, entry in enumerate(_typed(table, "hosts", list, ""), start=1):
            where = f"hosts[{number}]"
            if not isinstance(entry, dict):
                raise TopologyError(f"{where} must be a table: write [[hosts]] above it")
            hosts += _hosts(entry, where)
            if len(hosts) > MAX_HOSTS:
                raise TopologyError(f"hosts: at most {MAX_HOSTS}")
        return cls(
            name=_typed(table, "name", str, ""),
            classes=tuple(_latency_class(name, entry) for name, entry in classes.items()),
            hosts=tuple(hosts),
            loopback=_typed(table, "loopback", bool, "") if "loopback" in table else False,
        )


def _latency_class(name: str, entry: object) -> LatencyClass:
    where = f"classes.{name}"
    if not isinstance(entry, dict):
        raise TopologyError(f"{where} must be a table: write [classes.{name}] above it")
    _only(entry, f"{where}.", {"delay", "jitter", "loss", "rate", "download", "queue"})
    loss = entry.get("loss", 0.0)
    if isinstance(loss, bool) or not isinstance(loss, int | float):
        raise TopologyError(f"{where}.loss must be a fraction, such as 0.01 for 1 %")
    return LatencyClass(
        name=name,
        delay_seconds=_measure(entry, f"{where}.", "delay", parse_seconds) or 0.0,
        jitter_seconds=_measure(entry, f"{where}.", "jitter", parse_seconds) or 0.0,
        loss=float(loss),
        rate=_measure(entry, f"{where}.", "rate", parse_rate),
        download=_measure(entry, f"{where}.", "download", parse_rate),
        queue_seconds=_or(_measure(entry, f"{where}.", "queue", parse_seconds), 0.1),
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _hosts(entry: Mapping[str, Any], where: str) -> list[Host]:
    _only(entry, f"{where}.", {"name", "class", "count"})
    name = _typed(entry, "name", str, f"{where}.")
    latency_class = _typed(entry, "class", str, f"{where}.")
    if "count" not in entry:
        return [Host(name, latency_class)]
    count = entry["count"]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_HOSTS:
        raise TopologyError(f"{where}.count must be a whole number from 1 to {MAX_HOSTS}")
    return [Host(f"{name}-{number}", latency_class) for number in range(1, count + 1)]


def _measure(entry: Mapping[str, Any], where: str, field: str, parse: Any) -> float | None:
    if field not in entry:
        return None
    value = entry[field]
    if not isinstance(value, str):
        raise TopologyError(f"{where}{field} needs a unit: write it in quotes, such as '4ms'")
    try:
        return float(parse(value))
    except UsageError as error:
        raise TopologyError(f"{where}{field}: {error}") from error


def _typed(table: Mapping[str, Any], field: str, kind: type, where: str) -> Any:
    if field not in table:
        raise TopologyError(f"{where}{field} is missing")
    if not isinstance(table[field], kind):
        names: dict[type, str] = {
            str: "text",
            bool: "true or false",
            list: "a list of tables",
            dict: "a table",
        }
        raise TopologyError(f"{where}{field} must be {names[kind]}")
    return table[field]


def _only(table: Mapping[str, Any], where: str, known: set[str]) -> None:
    for field in table:
        if field not in known:
            raise TopologyError(f"{where}{field} is unknown; known are {', '.join(sorted(known))}")


def _check_name(name: str, where: str) -> None:
    if not _NAME.match(name):
        raise TopologyError(f"{where} must be lower-case letters, digits and inner hyphens")
