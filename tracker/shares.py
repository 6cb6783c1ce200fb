"""How many places each address has, and whose are the first to go. Pure."""

from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["Membership", "Shares"]

Membership: TypeAlias = tuple[bytes, int, int]
"""Info-hash, family and key of a member."""


class Shares:
    """Counts members per address, and lists those of an address that has half of its share.

    A count costs some 70 bytes and a list several times that; honest addresses never need one.

    Args:
        most: members that one address may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.counts: dict[int, int] = {}
        self._lists: dict[int, dict[Membership, None]] = {}

    def add(self, group: int, membership: Membership) -> None:
        """An address (`tracker.swarm.group_of`) has one member more."""
        count = self.counts[group] = self.counts.get(group, 0) + 1
        if 2 * count >= self._most:
            self._lists.setdefault(group, {})[membership] = None

    def remove(self, group: int, membership: Membership) -> None:
        """It has one less."""
        count = self.counts[group] - 1
        if count:
            self.counts[group] = count
        else:
            del self.counts[group]
        listed = self._lists.get(group)
        if listed is not None:
            listed.pop(membership, None)
            if not listed:
                del self._lists[group]

    def seen(self, group: int, membership: Membership) -> None:
        """A member has announced itself again: where there is a list, it stands there now."""
        listed = self._lists.get(group)
        if listed is not None:
            listed[membership] = None

    @property
    def crowded(self) -> bool:
        """Whether any address has a list."""
        return bool(self._lists)

    def full(self, group: int) -> Iterable[Membership]:
        """The listed members of an address that may have no more; empty if it may."""
        return self._lists.get(group, ()) if self.counts.get(group, 0) >= self._most else ()
