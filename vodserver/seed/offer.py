"""One title on offer: which replica of each extent is read, and which may take its place."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from vodserver.seed.choice import DiskLoads
from vodserver.seed.links import Links
from vodserver.seed.replicas import Held, Holder, Stamp
from vodserver.store import Store, Title

__all__ = ["Offer"]


class Offer:
    """A title, as it is on offer or about to be.

    Args:
        title: which.
        store: where its replicas are.
        links: what libtorrent is given.
        holder: opens replicas.

    Attributes:
        title: as the store has it now.
        handle: libtorrent's; None while it is not offered.
        chosen: the replica that each extent's link leads to; None where none is good.
        advertised: the extents that peers are told of.
        unseen: extents that are yet to be verified for the first time.
        refused: extents of which a read failed, so that peers were told that they are not there.
        waiting: peers that may have been told so, and what each had got at the last look.
    """

    def __init__(self, title: Title, store: Store, links: Links, holder: Holder) -> None:
        self.title = title
        self.handle: Any = None
        self.chosen: list[Held | None] = [None] * len(title.extents)
        self.advertised: list[bool] = [False] * len(title.extents)
        self.unseen = set(range(len(title.extents)))
        self.refused: set[int] = set()
        self.waiting: dict[tuple[str, int], int] | None = {}
        self.adding = False
        self.offered_at = asyncio.get_running_loop().time()
        self.offers = 0
        self._store = store
        self._links = links
        self._holder = holder
        self._good: dict[tuple[int, int], Stamp] = {}

    @property
    def in_part(self) -> bool:
        """Whether some extent is not there for peers."""
        return None in self.chosen

    def links(self) -> list[Path]:
        """The link of each extent."""
        return [self._links.path(self.title.folder, each.number) for each in self.title.extents]

    async def verify(self, number: int, disk: int) -> bool:
        """Read the replica of an extent on a disk, and remember it if it is good."""
        title = self.title
        extent = title.extents[number]
        path = self._store.replica_path(title, extent, disk)
        if path is None:
            return False
        before = await asyncio.to_thread(_stamp, path)
        good = await self._store.check_replica(title, extent, disk)
        if not good or before is None or await asyncio.to_thread(_stamp, path) != before:
            self.distrust(number, disk)
            return False
        self._good[number, disk] = before
        return True

    def distrust(self, number: int, disk: int) -> None:
        """Forget that a replica was good."""
        self._good.pop((number, disk), None)

    def distrust_disk(self, disk: int) -> None:
        """Forget that the replicas on a disk were good."""
        for key in [key for key in self._good if key[1] == disk]:
            del self._good[key]

    def verified(self, number: int) -> list[int]:
        """Disks whose replica of an extent was verified and is where the title has it."""
        there = self._store.disk_paths
        disks = self.title.extents[number].disks
        return [disk for disk in disks if disk in there and (number, disk) in self._good]

    def unverified(self, number: int) -> list[int]:
        """Disks whose replica of an extent is yet to be verified, or was bad."""
        verified = self.verified(number)
        there = self._store.disk_paths
        disks = self.title.extents[number].disks
        return [disk for disk in disks if disk in there and disk not in verified]

    def take(self, number: int, disk: int) -> bool:
        """Have a verified replica read from now on.

        Returns:
            Whether it is still the one that was verified.
        """
        path = self._store.replica_path(self.title, self.title.extents[number], disk)
        stamp = self._good.get((number, disk))
        held = None if path is None or stamp is None else self._holder.hold(disk, path, stamp)
        if held is None:
            self.distrust(number, disk)
            return False
        self._lead(number, held)
        return True

    def pick(self, number: int, loads: DiskLoads, *, avoid: int | None = None) -> bool:
        """Have the best of the verified replicas read, if there is one.

        Args:
            number: of the extent.
            loads: of the disks.
            avoid: a disk that is not to be taken.
        """
        ranked = loads.ranked(disk for disk in self.verified(number) if disk != avoid)
        return any(self.take(number, disk) for disk in ranked)

    def hide(self, number: int) -> None:
        """Have nothing read for an extent: whoever asks for it is told that it is not there."""
        self._lead(number, None)

    def is_misplaced(self, number: int) -> bool:
        """Whether what is read for an extent is not where the store has the extent."""
        held = self.chosen[number]
        return self.is_elsewhere(number) or (held is not None and held.is_deleted())

    def is_elsewhere(self, number: int) -> bool:
        """The same by what is known, without a look at the file."""
        held = self.chosen[number]
        return held is not None and (
            held.disk not in self.title.extents[number].disks
            or held.disk not in self._store.disk_paths
        )

    def on_disk(self, disk: int) -> Iterator[int]:
        """The extents that are read from a disk."""
        for number, held in enumerate(self.chosen):
            if held is not None and held.disk == disk:
                yield number

    def close(self) -> None:
        """Let go of its files and links."""
        for held in self.chosen:
            if held is not None:
                self._holder.release(held)
        self.chosen = [None] * len(self.chosen)
        self._links.drop(self.title.folder)

    def _lead(self, number: int, held: Held | None) -> None:
        before, self.chosen[number] = self.chosen[number], held
        if held is not None:
            held.since = asyncio.get_running_loop().time()
        # A link that cannot be changed leads where it led: the peer that asks is refused there.
        with suppress(OSError):
            target = None if held is None else held.target
            self._links.point(self.title.folder, number, target)
        if before is not None:
            self._holder.release(before)


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path)
    except OSError:
        return None
