"""A disk as data: what a read of it takes, and what may go wrong with it. Pure.

One arm, one read at a time: a read of b bytes takes t_a + b / r_d (the thesis, chapter 3). The
order of reads is the scheduler's, which gives a disk one after the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from experiments.errors import ScenarioError
from vodserver.model import DiskFigures
from vodserver.scheduling.service import DEFAULT_ACCESS_SECONDS, DEFAULT_RATE

__all__ = ["SATA_1", "SATA_300", "DiskModel", "Fault", "FaultKind", "read_seconds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskModel:
    """What a read takes."""

    access_seconds: float = DEFAULT_ACCESS_SECONDS
    """t_a: mean time of a seek and half a turn."""

    rate: float = DEFAULT_RATE
    """r_d: sequential rate, bytes per second; the mean over the zones."""

    jitter_share: float = 0.5
    """Access times are spread evenly over t_a (1 - share) to t_a (1 + share)."""

    zone_share: float = 0.0
    """The outermost track is so much faster than the mean and the innermost so much slower: 1/3
    is the factor of two that was seen within one disk."""

    def __post_init__(self) -> None:
        if not (0 <= self.jitter_share <= 1 and 0 <= self.zone_share < 1):
            raise ScenarioError("the spread of a disk's times is a share from 0 to 1")
        if not (math.isfinite(self.rate) and self.rate > 0 and self.access_seconds >= 0):
            raise ScenarioError("a disk has a rate above 0, and an access time of 0 s or more")

    @property
    def figures(self) -> DiskFigures:
        """What the closed form knows of it."""
        return DiskFigures(self.access_seconds, self.rate)

    def seconds(self, size: int, place: float, chance: float) -> float:
        """How long a read takes.

        Args:
            size: bytes.
            place: where on the disk, from 0 (outermost) to 1.
            chance: from 0 to 1, evenly; 0.5 is the mean.
        """
        access = self.access_seconds * (1 + self.jitter_share * (2 * chance - 1))
        return access + size / (self.rate * (1 + self.zone_share * (1 - 2 * place)))


SATA_1 = DiskModel(access_seconds=0.017, rate=525e6 / 8)
"""The source's disk of chapters 3 and 4, where no other disk takes the bus."""
SATA_300 = DiskModel(access_seconds=0.016, rate=446e6 / 8)
"""The source's other disk, of chapter 3."""


class FaultKind(StrEnum):
    """What can go wrong with a disk."""

    STUTTER = "stutter"
    """Every read also reads a share of useless bytes (the thesis, section 4.3)."""
    STALL = "stall"
    """A read that is begun brings nothing until the fault is over."""
    ERROR = "error"
    """Reads fail (EIO) after the time that they take."""
    CORRUPT = "corrupt"
    """Reads bring wrong bytes, and say nothing of it."""
    DEATH = "death"
    """The disk is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that is wrong with a disk for a time."""

    disk: int
    """Its number."""

    kind: FaultKind = FaultKind.STUTTER
    """What."""

    share: float = 1.0
    """Of a stutter: useless bytes per useful byte; 1 halves the rate. Of errors and corruption: the
    part of the reads that it meets."""

    begin_seconds: float = 0.0
    """When it is switched on."""

    end_seconds: float = math.inf
    """When it is switched off."""

    def __post_init__(self) -> None:
        if self.share < 0 or self.disk < 0 or self.end_seconds < self.begin_seconds:
            raise ScenarioError(
                "a fault has a disk, a share of 0 or more, and ends after it begins"
            )
        if self.kind is FaultKind.STALL and math.isinf(self.end_seconds):
            raise ScenarioError("a stall ends: what never comes back is a death")

    def is_on(self, now: float) -> bool:
        """Whether it is switched on."""
        return self.begin_seconds <= now < self.end_seconds


def read_seconds(
    model: DiskModel,
    faults: Sequence[Fault],
    size: int,
    now: float,
    *,
    place: float,
    chance: float,
) -> float:
    """How long a read that begins now takes, with the disk's faults.

    Args:
        model: the disk.
        faults: its own.
        size: bytes.
        now: when it begins, seconds.
        place: see `DiskModel.seconds`.
        chance: likewise.
    """
    seconds = model.seconds(size, place, chance)
    for fault in faults:
        if not fault.is_on(now):
            continue
        if fault.kind is FaultKind.STUTTER:
            seconds += model.seconds(round(size * fault.share), place, 0.5) - model.seconds(
                0, place, 0.5
            )
        elif fault.kind is FaultKind.STALL:
            seconds += fault.end_seconds - now
    return seconds
