"""One swarm: its members by kind. Pure.

A kind is an address family (0 IPv4, 1 IPv6, and 2 and 3, the same two on loopback) times two, plus
1 for holders of the whole film.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from tracker.messages import SwarmCounts, is_loopback
from tracker.roster import Roster

__all__ = ["LOOPBACK", "WIDTHS", "Swarm", "family_of", "group_of", "key_of"]

LOOPBACK: Final = 2
"""The first of the families that are on loopback."""

WIDTHS: Final = (6, 18, 6, 18)
"""Bytes of a packed endpoint, by family."""

_KINDS: Final = 8


def _kinds_told(families: Iterable[int], *, complete: bool) -> tuple[int, ...]:
    """The kinds of which an asker is told: who has the whole film does not need others who have."""
    both = ((2 * family,) if complete else (2 * family, 2 * family + 1) for family in families)
    return tuple(kind for kinds in both for kind in kinds)


_KINDS_TOLD: Final = tuple(
    _kinds_told((0, 1) if family < LOOPBACK else (0, 1, 2, 3), complete=complete)
    for family in range(len(WIDTHS))
    for complete in (False, True)
)
"""By the asker's kind, whom it is told of: nobody on loopback, unless it is there itself."""

_KINDS_TOLD_OF_ONE: Final = tuple(
    _kinds_told((family,) if family < LOOPBACK else (family - LOOPBACK, family), complete=complete)
    for family in range(len(WIDTHS))
    for complete in (False, True)
)
"""The same with endpoints of the asker's own width alone."""


def family_of(address: bytes) -> int:
    """The family of a packed address."""
    return (len(address) == 16) + LOOPBACK * is_loopback(address)


def key_of(address: bytes, port: int) -> int:
    """An endpoint as one number: the packed address, then two bytes of port, big-endian."""
    return int.from_bytes(address, "big") << 16 | port


def group_of(family: int, key: int) -> int:
    """Whom limits per address count together: an IPv4 address, or an IPv6 /64 (one household).

    Args:
        family: by `family_of`, not on loopback.
        key: an endpoint as one number.
    """
    return key >> 16 if family == 0 else ~(key >> 80)


class Swarm:
    """The members of one swarm.

    Attributes:
        downloaded: completions ever seen (BEP 48).
        complete: how many members have the whole film.
        incomplete: how many have not.
        rosters: the members by kind; None where there are none.
        due: no member was last heard before this, in seconds; NaN: there are none.
    """

    __slots__ = ("complete", "downloaded", "due", "incomplete", "rosters")

    def __init__(self) -> None:
        self.downloaded = 0
        self.complete = 0
        self.incomplete = 0
        self.rosters: list[Roster | None] = [None] * _KINDS
        self.due = math.nan

    def __len__(self) -> int:
        return self.complete + self.incomplete

    def counts(self) -> SwarmCounts:
        """The swarm in three numbers."""
        return SwarmCounts(self.complete, self.incomplete, self.downloaded)

    def living(self) -> Iterator[tuple[int, Roster]]:
        """Kinds of which there are members."""
        return ((kind, roster) for kind, roster in enumerate(self.rosters) if roster)

    def seat(self, family: int, key: int) -> tuple[int, Roster, int] | None:
        """Kind, roster and place of a member, if it is one."""
        for kind in (2 * family, 2 * family + 1):
            roster = self.rosters[kind]
            if roster is not None:
                place = roster.places.get(key)
                if place is not None:
                    return kind, roster, place
        return None

    def longest_silent(self) -> tuple[float, int, int]:
        """When it was last heard, its family and its key."""
        (heard, place), kind, roster = min(
            ((roster.oldest(), kind, roster) for kind, roster in self.living()),
            key=lambda found: found[0],
        )
        return heard, kind // 2, roster.key_at(place)

    def eligible(self, own: int, key: int, *, both: bool) -> list[tuple[Roster, int]]:
        """Whom an asker may be told of: rosters, and the asker's own place there, or -1.

        Args:
            own: the asker's kind.
            key: its endpoint.
            both: of both address families, or of its own alone.
        """
        found = []
        rosters = self.rosters
        for kind in (_KINDS_TOLD if both else _KINDS_TOLD_OF_ONE)[own]:
            roster = rosters[kind]
            if roster is not None:
                if kind != own:
                    found.append((roster, -1))
                    continue
                place = roster.places.get(key, -1)
                if place < 0 or len(roster.heard) > 1:
                    found.append((roster, place))
        return found
