"""An array, its films and its viewers as data. Pure."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from experiments.arrays.disk import SATA_1, DiskModel, Fault
from experiments.errors import ScenarioError
from vodserver.model import disk_streams

__all__ = ["ArrayScenario", "Load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Who plays what, and from when on."""

    zipf: float | None = None
    """Films are drawn, the one of rank r in proportion to r ** -zipf. None: every stream plays a
    film of its own, and so that a placement of whole films is exactly balanced."""

    clustered: bool = False
    """Films lie on the disks by their popularity: the most popular together ("naive worst")."""

    overload: float = 0.0
    """The films of the first disk (under raid1: pair) are asked for so much more than others'."""

    mean_gap_seconds: float | None = None
    """Streams begin at random (Poisson), with this mean gap. None: evenly at random over the
    window."""

    window_seconds: float = 5.0
    """In which all streams begin."""

    def __post_init__(self) -> None:
        if self.window_seconds < 0 or self.overload < 0:
            raise ScenarioError("a load has a window and an overload of 0 or more")
        if self.mean_gap_seconds is not None and self.mean_gap_seconds <= 0:
            raise ScenarioError("the mean gap between two streams must be above 0 s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayScenario:
    """One run of an array; the defaults are the source's (the thesis, chapter 4)."""

    disks: tuple[DiskModel, ...] = (SATA_1,) * 8
    """By number."""

    allocation: str = "rda"
    """Where extents lie: a placement of `vodserver.allocation`, or `rda-8` with a copy on each of
    eight disks."""

    scheduler: str = "shortest-queue"
    """Which disk reads what: a policy of `vodserver.scheduling`; `lazy-plain` is `lazy` that leaves
    nothing to faster disks."""

    load: Load = Load()
    """Who plays what."""

    faults: tuple[Fault, ...] = ()
    """What is wrong with the disks, and when."""

    stream_rate: float = 6e6 / 8
    """r_c: bytes per second."""

    extent_seconds: float = 5.0
    """t_b: playing time of an extent."""

    lead_seconds: float = 5.0
    """Film that a client is given before it plays, and kept ahead."""

    read_seconds: float | None = None
    """Playing time that one read brings; None: all of the extent, as the server reads ahead."""

    films: int = 1000
    """How many there are, where they are drawn by their popularity."""

    watch_seconds: float | None = None
    """How long each is played; None: until the run ends."""

    hold_seconds: float = 400.0
    """How long the run goes on after the last stream has begun."""

    cache_bytes: int = 0
    """Memory in which what was read stays until it is overwritten (least recently used first)."""

    link_rate: float | None = None
    """r_l: what the network carries, bytes per second; None for no limit."""

    admission: bool = False
    """Whether the server refuses streams that it could not keep fed."""

    def __post_init__(self) -> None:
        if not self.disks or self.films < 1:
            raise ScenarioError("an array has disks, and films on them")
        if min(self.stream_rate, self.extent_seconds, self.lead_seconds) <= 0:
            raise ScenarioError("streams have a rate, extents a length, and clients a buffer")
        if self.read_seconds is not None and not 0 < self.read_seconds <= self.extent_seconds:
            raise ScenarioError("a read brings a part of an extent")
        if any(fault.disk >= len(self.disks) for fault in self.faults):
            raise ScenarioError("a fault is one of a disk that is there")

    @property
    def unit_seconds(self) -> float:
        """Playing time that one read brings."""
        return self.extent_seconds if self.read_seconds is None else self.read_seconds

    @property
    def unit_bytes(self) -> int:
        """Bytes of it."""
        return round(self.stream_rate * self.unit_seconds)

    @property
    def model_streams(self) -> float:
        """N of the closed form, the link included; it knows no memory and no faults."""
        figures = [disk.figures for disk in self.disks]
        streams = disk_streams(figures, self.stream_rate, self.unit_seconds)
        return (
            streams if self.link_rate is None else min(streams, self.link_rate / self.stream_rate)
        )

    def with_(self, **changes: Any) -> Self:
        """The same but for some fields."""
        return replace(self, **changes)

    def describe(self) -> dict[str, Any]:
        """As plain data that JSON can hold."""
        plain = asdict(self)
        plain["disks"] = [asdict(disk) for disk in self.disks]
        plain["faults"] = [
            {**asdict(fault), "end_seconds": min(fault.end_seconds, 1e9)} for fault in self.faults
        ]
        return plain
