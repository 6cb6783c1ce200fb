"""Uniform samples from a swarm's rosters. Pure: chance comes in as an argument."""

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np

from tracker.roster import Roster

__all__ = ["Sampler", "Seat", "pack"]

Seat: TypeAlias = tuple[Roster, int]
"""A member: its roster and its place there."""

_CHANCES_AT_ONCE: Final = 1024


class Sampler:
    """Draws samples.

    Args:
        rng: where they come from.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._chances: list[float] = []

    def chance(self) -> float:
        """A number from 0 on, below 1."""
        if not self._chances:
            self._chances = self._rng.random(_CHANCES_AT_ONCE).tolist()
        return self._chances.pop()

    def windows(
        self, rosters: list[tuple[Roster, int]], wanted: int
    ) -> list[tuple[Roster, int, int, int]]:
        """Roster, members to draw from, first place and number of each part of a sample."""
        total = 0
        for _, size in rosters:
            total += size
        if total <= wanted:
            return [(roster, size, 0, size) for roster, size in rosters]
        if len(rosters) == 1:
            roster, size = rosters[0]
            return [(roster, size, int(self.chance() * size), wanted)]
        # Each roster gives its share of the sample, rounded so that the mean is exact.
        found = []
        edge, share, before, last = self.chance(), wanted / total, 0, rosters[-1][0]
        for roster, size in rosters:
            edge += size * share
            count = (wanted if roster is last else int(edge)) - before
            count = min(count, size)
            before += count
            if count:
                found.append((roster, size, int(self.chance() * size), count))
        return found

    def packed(self, rosters: list[tuple[Roster, int]], wanted: int) -> bytes:
        """The same as endpoints, as they go over the wire."""
        return b"".join(
            [
                roster.window(start, count, size)
                for roster, size, start, count in self.windows(rosters, wanted)
            ]
        )

    def seats(
        self,
        rosters: list[tuple[Roster, int]],
        wanted: int,
        began: float | None,
        peer_id: bytes,
    ) -> list[Seat]:
        """The same one by one, nearest ahead first, without the asker at its other address."""
        near: list[Seat] = []
        if began is not None and wanted:
            half = -(-wanted // 2)
            ahead = [
                (then, seat, roster)
                for roster, _ in rosters
                for then, seat in roster.just_ahead(began, half)
            ]
            ahead.sort(key=lambda found: -found[0])
            near = [(roster, seat) for _, seat, roster in ahead[:half]]
        at_random = [
            (roster, (start + step) % size)
            # Two to spare: the asker may be drawn at its other address (BEP 7).
            for roster, size, start, count in self.windows(rosters, wanted + 2 if wanted else 0)
            for step in range(count)
        ]
        # What is drawn too much must not be what stands in the last roster.
        order = self._rng.permutation(len(at_random)).tolist()
        found = dict.fromkeys(
            seat
            for seat in (*near, *(at_random[place] for place in order))
            if seat[0].id_at(seat[1]) != peer_id
        )
        return list(found)[:wanted]


def pack(seats: Iterable[Seat], width: int) -> bytes:
    """Those members whose endpoints have this width, as they go over the wire."""
    return b"".join(
        roster.window(place, 1, len(roster)) for roster, place in seats if roster.width == width
    )
