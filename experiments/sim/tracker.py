"""The tracker in virtual time: who is there, and where their playheads were when they said so."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Member", "SimTracker"]


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody as last announced.

    Attributes:
        number: who.
        position: film time of its playhead then; None if it has none.
        heard_at: when.
        complete: whether it has the whole film.
        operator: whether it is the operator's seed.
    """

    number: int
    position: float | None
    heard_at: float
    complete: bool
    operator: bool = False


class SimTracker:
    """Knows who is there.

    Args:
        most: peers in an answer.
        rng: which ones, if there are more.
    """

    def __init__(self, most: int, rng: np.random.Generator) -> None:
        self._members: dict[int, Member] = {}
        self._most = most
        self._rng = rng

    def announce(self, member: Member) -> list[Member]:
        """Take in an announce and answer it: those just ahead, then a sample, without the asker.

        As the tracker does (docs/tracker.md). Who has everything is not told of others who have.
        """
        self._members.pop(member.number, None)
        others = [m for m in self._members.values() if not (member.complete and m.complete)]
        self._members[member.number] = member
        if len(others) <= self._most:
            return others
        drawn = self._rng.choice(len(others), size=self._most, replace=False)
        near = [] if member.complete else _just_ahead(member, others)[: -(-self._most // 2)]
        both = {m.number: m for m in (*near, *(others[place] for place in drawn.tolist()))}
        return list(both.values())[: self._most]

    def stopped(self, number: int) -> None:
        """Somebody has left."""
        self._members.pop(number, None)


def _just_ahead(asker: Member, others: list[Member]) -> list[Member]:
    """Those who play ahead of the asker, if it says where it is; the nearest first."""
    if asker.position is None:
        return []
    leads = [
        (m.position + asker.heard_at - m.heard_at - asker.position, m)
        for m in others
        if m.position is not None
    ]
    ahead = [(lead, m.number, m) for lead, m in leads if lead > 0]
    return [m for _, _, m in sorted(ahead)]
