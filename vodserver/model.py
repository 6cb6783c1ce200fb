"""How many streams a disk array can serve: the closed form of the thesis, chapter 3.

Rates are bytes per second, times seconds. The formulas hold in any unit of data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from toast.common.errors import UsageError

__all__ = [
    "ETHERNET_PAYLOAD",
    "Capacity",
    "DiskFigures",
    "block_seconds",
    "capacity",
    "disk_streams",
    "disks_needed",
    "link_streams",
    "rotational_delay",
]

ETHERNET_PAYLOAD: Final = 0.949
"""Part of an Ethernet's bit rate that carries TCP payload: 949 Mb/s of a gigabit."""


@dataclass(frozen=True, slots=True)
class DiskFigures:
    """What the model knows of a disk.

    Attributes:
        access_seconds: t_a, mean time of a seek and half a turn, >= 0.
        rate: r_d, sequential rate, bytes per second, > 0.
    """

    access_seconds: float
    rate: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.access_seconds) and self.access_seconds >= 0):
            raise UsageError("a disk's access time is 0 s or more: write for example 17ms")
        _check_positive(rate=self.rate)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What an array can serve.

    Attributes:
        streams: whole streams, the N that can be promised.
        disk_streams: N as the disks limit it.
        link_streams: N as the network link limits it; None if that is not known.
        limit: which of the two is less.
    """

    streams: int
    disk_streams: float
    link_streams: float | None
    limit: Literal["disks", "link"]


def block_seconds(
    disk: DiskFigures, stream_rate: float, buffer_seconds: float, *, stripe: int = 1
) -> float:
    """Disk time that one block costs: D_s t_a + r_c t_b / r_d.

    Striped over D_s disks, the transfer is shared out but each of them has to seek.

    Args:
        disk: t_a and r_d.
        stream_rate: r_c, bytes per second.
        buffer_seconds: t_b, playing time of a block.
        stripe: D_s, disks that each block is spread over.

    Raises:
        UsageError: a figure is not above 0.
    """
    _check_positive(stream_rate=stream_rate, buffer_seconds=buffer_seconds, stripe=stripe)
    return stripe * disk.access_seconds + stream_rate * buffer_seconds / disk.rate


def disk_streams(
    disks: Sequence[DiskFigures], stream_rate: float, buffer_seconds: float, *, stripe: int = 1
) -> float:
    """Streams that an array can read, N = D t_b r_d / (D_s t_a r_d + r_c t_b).

    In each t_b every disk has t_b seconds to give, and every stream takes the time of a block.
    Disks of several kinds are added up: that is right where work can go to the disk which has
    time, as with two replicas of everything and a scheduler that learns; where it cannot, the
    slowest disk is the limit of all.

    Raises:
        UsageError: no disks, a stripe wider than the array, or a figure not above 0.
    """
    if not disks:
        raise UsageError("no disks serve no streams: name at least one")
    if stripe > len(disks):
        raise UsageError(f"{len(disks)} disks cannot be striped {stripe} wide")
    return sum(
        buffer_seconds / block_seconds(disk, stream_rate, buffer_seconds, stripe=stripe)
        for disk in disks
    )


def disks_needed(
    streams: float, disk: DiskFigures, stream_rate: float, buffer_seconds: float, *, stripe: int = 1
) -> int:
    """Disks that it takes to read so many streams, D = N (D_s t_a r_d + r_c t_b) / (t_b r_d).

    Returns:
        Whole disks, and no fewer than the stripe is wide.

    Raises:
        UsageError: a figure is not above 0.
    """
    _check_positive(streams=streams)
    cost = block_seconds(disk, stream_rate, buffer_seconds, stripe=stripe)
    # What comes out whole must not become one more by rounding of the last bit.
    return max(math.ceil(streams * cost / buffer_seconds * (1 - 1e-12)), stripe)


def link_streams(link_rate: float, stream_rate: float) -> float:
    """Streams that a link can carry, N <= r_l / r_c.

    Args:
        link_rate: r_l, payload, bytes per second (`ETHERNET_PAYLOAD` of an Ethernet's bit rate).
        stream_rate: r_c, bytes per second.

    Raises:
        UsageError: a figure is not above 0.
    """
    _check_positive(link_rate=link_rate, stream_rate=stream_rate)
    return link_rate / stream_rate


def capacity(
    disks: Sequence[DiskFigures],
    stream_rate: float,
    buffer_seconds: float,
    *,
    stripe: int = 1,
    link_rate: float | None = None,
) -> Capacity:
    """What an array behind a link can serve: the lesser of `disk_streams` and `link_streams`.

    Raises:
        UsageError: see there.
    """
    of_disks = disk_streams(disks, stream_rate, buffer_seconds, stripe=stripe)
    of_link = None if link_rate is None else link_streams(link_rate, stream_rate)
    by_link = of_link is not None and of_link < of_disks
    least = of_link if of_link is not None and by_link else of_disks
    return Capacity(
        math.floor(least * (1 + 1e-12)), of_disks, of_link, "link" if by_link else "disks"
    )


def rotational_delay(turns_per_minute: float) -> float:
    """Mean wait for the platter, half a turn: 30 / R seconds (the source's 30000 / R ms).

    Raises:
        UsageError: it does not turn.
    """
    _check_positive(turns_per_minute=turns_per_minute)
    return 30 / turns_per_minute


def _check_positive(**figures: float) -> None:
    for name, value in figures.items():
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"the {name.replace('_', ' ')} has to be above 0")
