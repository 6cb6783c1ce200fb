"""Uniform samples from a swarm's rosters. Pure: chance comes in as an argument."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np

from tracker.messages import Peer
from tracker.roster import Roster

__all__ = ["Sampler", "Seat", "pack", "peer_at"]

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
    ) -> list[tuple[Roster, int, int]]:
        """The parts of a sample: roster, first place and number, on around its end.

        Args:
            rosters: to draw from, none of them empty, each with the place of the asker, who is left
                out, or -1.
            wanted: so many at most.
        """
        total = 0
        for roster, own in rosters:
            total += len(roster.heard) - (own >= 0)
        found: list[tuple[Roster, int, int]] = []
        # Each roster gives its share of the sample, rounded so that the mean is exact.
        wanted = min(wanted, total)
        share = wanted / total if total else 0.0
        edge = self.chance() if len(rosters) > 1 else 0.0
        before, last = 0, rosters[-1][0] if rosters else None
        for roster, own in rosters:
            size = len(roster.heard) - (own >= 0)
            edge += size * share
            count = min(size, (wanted if roster is last else int(edge)) - before)
            before += count
            if count > 0:
                found += self._parts(roster, own, size, count)
        return found

    def _parts(
        self, roster: Roster, own: int, size: int, count: int
    ) -> tuple[tuple[Roster, int, int], ...]:
        """So many of one roster, which has `size` without the asker."""
        start = int(self.chance() * size)
        if own < 0:
            return ((roster, start, count),)
        # Places are counted from behind the asker, so that it is never among them.
        first, rest = (own + 1 + start) % (size + 1), size - start
        if count <= rest:
            return ((roster, first, count),)
        return (roster, first, rest), (roster, (own + 1) % (size + 1), count - rest)

    def packed(self, rosters: list[tuple[Roster, int]], wanted: int) -> bytes | bytearray:
        """The same as endpoints, as they go over the wire."""
        if len(rosters) == 1:  # most swarms have few who hold all: the way of most answers
            roster, own = rosters[0]
            size = len(roster.heard) - (own >= 0)
            if not (count := min(size, wanted)):
                return b""
            parts: Sequence[tuple[Roster, int, int]] = self._parts(roster, own, size, count)
            if len(parts) == 1:
                return roster.window(parts[0][1], count)
        else:
            parts = self.windows(rosters, wanted)
        return b"".join([roster.window(first, count) for roster, first, count in parts])

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
            (roster, (first + step) % len(roster))
            # Two to spare: the asker may be drawn at its other address (BEP 7).
            for roster, first, count in self.windows(rosters, wanted + 2 if wanted else 0)
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
    return b"".join(roster.window(place, 1) for roster, place in seats if roster.width == width)


def peer_at(now: float, roster: Roster, place: int) -> Peer:
    """The member at a place, as of now."""
    endpoint, began = roster.window(place, 1), roster.began_at(place)
    return Peer(
        peer_id=roster.id_at(place),
        address=bytes(endpoint[:-2]),
        port=int.from_bytes(endpoint[-2:], "big"),
        complete=roster.complete,
        # It has been playing on since it announced.
        playhead=None if math.isnan(began) else now - began,
    )
