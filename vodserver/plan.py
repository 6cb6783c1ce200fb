"""What to buy for so many films and viewers, under each placement, and what one failure costs.

The closed form of `vodserver.model` says what disks give under an even load. Real viewers choose
films at random: where a film lies on one disk or pair, one of these has more viewers than the
others. With m viewers for each of g of them, the fullest has about m + sqrt(2 m ln g) (the largest
of g normal variables), and is the limit of all. Where every extent lies on two random disks, no
disk is fuller than the others (Sanders, Egner, Korst, SODA 2000).

A third copy feeds no more viewers: it is there for the disk that fails while another one is being
replaced. With two copies an extent is lost then if it lies on just these two, and long films have
extents everywhere.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from toast.common.errors import UsageError
from vodserver.model import DiskFigures, block_seconds

__all__ = ["PLACEMENTS", "Plan", "Wish", "plan"]

PLACEMENTS: Final = ("rda", "rda-3", "raid1", "naive")
_COPIES: Final[Mapping[str, int]] = {"rda": 2, "rda-3": 3, "raid1": 2, "naive": 1}
_MOST_DISKS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the server is for.

    Attributes:
        films: how many there are.
        film_seconds: length of one.
        stream_rate: r_c, bytes per second.
        viewers: streams at a time.
        buffer_seconds: t_b, playing time of an extent.
        disk: t_a and r_d.
        disk_bytes: what one disk holds.
        full_share: part of a disk that films may fill.
        busy_share: part of a disk's time that streams may take; the rest is for repair, for range
            requests and for what the model does not see.
    """

    films: int
    film_seconds: float
    stream_rate: float
    viewers: int
    buffer_seconds: float
    disk: DiskFigures
    disk_bytes: float
    full_share: float = 0.9
    busy_share: float = 0.85

    def __post_init__(self) -> None:
        if min(self.films, self.film_seconds, self.viewers, self.disk_bytes) <= 0:
            raise UsageError("films, their length, viewers and a disk's size have to be above 0")
        if not (0 < self.full_share <= 1 and 0 < self.busy_share <= 1):
            raise UsageError("a disk can be full and busy to a share above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one placement takes.

    Attributes:
        placement: its name.
        disks: how many; the more of the two following.
        disks_for_films: that hold all copies of all films.
        disks_for_viewers: that feed all viewers, chosen at random.
        streams_even: whole streams of these disks if every disk had as many viewers.
        streams_random: whole streams if viewers choose films at random.
        streams_after_failure: the same without one disk, of films that are all there.
        films_lost: with that disk, until it is restored.
        films_lost_by_two: the mean number of films with a hole, if a second disk fails before.
    """

    placement: str
    disks: int
    disks_for_films: int
    disks_for_viewers: int
    streams_even: int
    streams_random: int
    streams_after_failure: int
    films_lost: int
    films_lost_by_two: float


def plan(placement: str, wish: Wish) -> Plan:
    """What a placement takes.

    Raises:
        UsageError: it is none of `PLACEMENTS`, or no number of disks would do.
    """
    if placement not in _COPIES:
        raise UsageError(f"there is no plan for '{placement}': choose {', '.join(PLACEMENTS)}")
    film_bytes = wish.film_seconds * wish.stream_rate
    stored = wish.films * film_bytes * _COPIES[placement]
    step = 2 if placement == "raid1" else 1
    fewest = _COPIES[placement]
    for_films = max(_up(stored / (wish.disk_bytes * wish.full_share), step), fewest)
    for_viewers = _fewest(lambda n: _random(placement, wish, n) >= wish.viewers, fewest, step)
    disks = max(for_films, for_viewers)
    return Plan(
        placement,
        disks,
        for_films,
        for_viewers,
        math.floor(disks * _each(wish)),
        math.floor(_random(placement, wish, disks)),
        math.floor(_after_failure(placement, wish, disks)),
        math.ceil(wish.films / disks) if placement == "naive" else 0,
        round(wish.films * _lost_by_two(placement, wish, disks), 2),
    )


def _each(wish: Wish) -> float:
    """Streams of one disk."""
    cost = block_seconds(wish.disk, wish.stream_rate, wish.buffer_seconds)
    return wish.busy_share * wish.buffer_seconds / cost


def _random(placement: str, wish: Wish, disks: int) -> float:
    """Streams of so many disks if viewers choose at random."""
    if placement.startswith("rda"):
        return disks * _each(wish)
    width = _COPIES[placement]
    return disks // width * _mean(width * _each(wish), disks // width)


def _mean(most: float, groups: int) -> float:
    """Mean viewers of each of so many groups where the fullest has `most`: m + sqrt(2 m ln g)."""
    half = math.sqrt(2 * math.log(groups)) / 2 if groups > 1 else 0.0
    return (math.sqrt(half * half + most) - half) ** 2


def _after_failure(placement: str, wish: Wish, disks: int) -> float:
    if placement == "raid1":
        # The partner that is left feeds all viewers of its pair: the others are not full then.
        pairs = disks // 2
        whole, left = _mean(2 * _each(wish), pairs), _mean(_each(wish), pairs)
        return (pairs - 1) * whole + left
    if placement.startswith("rda"):
        return (disks - 1) * _each(wish)
    return _random(placement, wish, disks - 1) if disks > 1 else 0.0


def _lost_by_two(placement: str, wish: Wish, disks: int) -> float:
    """The chance of a film to have a hole, if two disks fail at random."""
    if placement == "naive":
        return min(1.0, 2 / disks)
    if placement == "raid1":  # that both are of one pair, and the film's
        return 2 / disks / (disks - 1)
    if _COPIES[placement] > 2:
        return 0.0
    extents = math.ceil(wish.film_seconds / wish.buffer_seconds)
    spared = 1 - 1 / math.comb(disks, 2)
    return 1.0 - spared**extents


def _up(number: float, step: int) -> int:
    return math.ceil(math.ceil(number * (1 - 1e-12)) / step) * step


def _fewest(holds: Callable[[int], bool], first: int, step: int) -> int:
    """The fewest disks for which something holds that holds for more, too."""
    low, high = 0, 1
    while not holds(first + high * step):
        low, high = high, 2 * high
        if high > _MOST_DISKS:
            raise UsageError(f"more than {_MOST_DISKS} disks would be needed for so many viewers")
    if holds(first):
        return first
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(first + middle * step) else (middle, high)
    return first + high * step
