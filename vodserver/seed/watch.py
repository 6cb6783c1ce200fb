"""Looking around: disks that go, files that change, peers that wait, and which replica is best."""

import asyncio
import functools
from pathlib import Path
from typing import Any, Final

from vodserver.seed.choice import DiskLoads, Offered, plan_moves
from vodserver.seed.offer import Offer
from vodserver.seed.offers import Offers
from vodserver.seed.settings import SeedSettings
from vodserver.seed.swarm import Swarm
from vodserver.store import Store
from vodserver.store.layout import ID_NAME
from vodserver.store.upkeep.threads import in_thread

__all__ = ["Watch"]

_LOOKS: Final = 2000
"""Files that one look at most asks the file system about: 2 ms."""


_PATIENCE_SECONDS: Final = 1.0
"""A disk that is there says so at once."""


def _is_there(path: Path) -> bool:
    try:
        return (path / ID_NAME).is_file()
    except OSError:  # it fails at the mere question
        return False


class Watch:
    """Sees what no event tells.

    Args:
        store: whose disks.
        settings: how often.
        swarm: whose peers.
        offers: what is on offer.
    """

    def __init__(self, store: Store, settings: SeedSettings, swarm: Swarm, offers: Offers) -> None:
        self._store = store
        self._settings = settings
        self._swarm = swarm
        self._offers = offers
        self._gone: frozenset[int] = frozenset()
        self._asking: dict[int, asyncio.Future[bool]] = {}
        self._sent: dict[Any, int] = {}
        self._looked = 0

    async def watch(self) -> None:
        """Look around, for ever."""
        loop = asyncio.get_running_loop()
        passed = loop.time()
        while True:
            await asyncio.sleep(self._settings.watch_seconds)
            await self._look_at_disks()
            self._offers.loads.leaving = self._leaving()
            self._look_at_files()
            for offer in self._offers:
                if offer.refused and offer.handle is not None:
                    await self._help_waiting(offer)
            now = loop.time()
            if now - passed >= self._settings.pass_seconds:
                self._pass(now - passed)
                passed = now

    def note_disk(self, offer: Offer, disk: int) -> None:
        """See what a disk that came or went is to a title."""
        there = disk in self._store.disk_paths
        if not there:
            offer.distrust_disk(disk)
            for number in list(offer.on_disk(disk)):
                if not self._offers.pick(offer, number):
                    # Its files are closed, so that it can be unmounted.
                    self._offers.hide(offer, number)
            return
        for number, held in enumerate(offer.chosen):
            lost = held is None and number not in offer.unseen
            if lost and disk in offer.title.extents[number].disks:
                self._offers.verifier.hasten(offer, number)
        if not offer.unseen:
            self._offers.verifier.add_spares(offer)

    def look_at(self, offer: Offer, numbers: list[int]) -> None:
        """Leave those replicas whose files have changed since they were verified."""
        for number in numbers:
            held = offer.chosen[number]
            if held is None:
                continue
            if not held.is_unchanged():
                self._offers.leave(offer, number, held.disk)
            elif held.is_deleted() and not self._offers.pick(offer, number, avoid=held.disk):
                # It is read still: kept while there is no other, and another is looked for.
                self._offers.verifier.hasten(offer, number)

    async def _look_at_disks(self) -> None:
        """Leave the disks whose directories are not there any more."""
        paths = dict(self._store.disk_paths)
        for number, path in paths.items():
            if number not in self._asking:
                # Each in a thread of its own: one that hangs must not hold up the others.
                asking = in_thread(functools.partial(_is_there, path), linger=0.0)
                self._asking[number] = asyncio.ensure_future(asking)
        if self._asking:
            await asyncio.wait(self._asking.values(), timeout=_PATIENCE_SECONDS)
        answers = {number: asking for number, asking in self._asking.items() if asking.done()}
        for number in answers:
            del self._asking[number]
        gone = {number for number, asking in answers.items() if not asking.result()}
        # What it was that does not answer, it is: the store's own watch knows of disks that hang.
        known = self._gone - answers.keys()
        before, self._gone = self._gone, frozenset((gone | known) & paths.keys())
        for disk in self._gone - before:
            self.learn_loads(0.0)
            for offer in self._offers:
                offer.distrust_disk(disk)
                for number in list(offer.on_disk(disk)):
                    self._offers.pick(offer, number)  # without another, what is open is read still
        for disk in before - self._gone:
            self.learn_loads(0.0)
            for offer in self._offers:
                self.note_disk(offer, disk)

    def _look_at_files(self) -> None:
        """Look at some of the files on offer, others each time."""
        first, left = self._looked, _LOOKS
        for offer in self._offers:
            count = 0 if offer.handle is None else len(offer.chosen)
            numbers = range(count)[first : first + left]
            self.look_at(offer, list(numbers))
            left -= len(numbers)
            if not left:
                self._looked += _LOOKS
                return
            first = max(first - count, 0)
        self._looked = 0

    async def _help_waiting(self, offer: Offer) -> None:
        """Call peers anew that wait for what they were once told is not there.

        No message says that a piece is back; a new connection does. So this is for those alone who
        lack such a piece, ask for nothing, and got nothing since the last look.
        """
        handle = offer.handle
        peers = await self._swarm.peers(handle)
        if handle is not offer.handle or not self._offers.is_current(offer):
            return
        got = {tuple(peer.ip): int(peer.total_upload) for peer in peers}
        if offer.waiting is None:
            offer.waiting = got
            return
        stuck = [
            peer
            for peer in peers
            if offer.waiting.get(tuple(peer.ip)) == peer.total_upload
            and peer.upload_queue_length == 0
            and self._lacks_refused(offer, peer)
        ]
        offer.waiting = {peer: got[peer] for peer in offer.waiting if peer in got}
        if stuck:
            self._offers.counts["reconnects"] += len(stuck)
            await self._swarm.call_back(handle, {peer.ip[0] for peer in stuck}, drop=True)
        if not offer.waiting:
            offer.refused.clear()

    def _lacks_refused(self, offer: Offer, peer: Any) -> bool:
        pieces = list(peer.pieces)
        each = offer.title.extent_bytes // offer.title.piece_bytes
        return any(
            offer.chosen[number] is not None
            and not all(pieces[number * each : (number + 1) * each])
            for number in offer.refused
        )

    def _pass(self, seconds: float) -> None:
        """Have some extents read from less loaded disks; try again what had no good replica."""
        sent = self.learn_loads(seconds)
        leaving = self._offers.loads.leaving
        offered = [
            Offered((offer.title.folder, number), held.disk, tuple(others), rate)
            for offer in self._offers
            if offer.handle is not None
            for rate in [sent.get(offer.title.folder, 0.0) / max(1, len(offer.chosen))]
            for number, held in enumerate(offer.chosen)
            # Of what nobody reads only that is moved which has to go.
            if held is not None
            and (rate > 0 or held.disk in leaving)
            and (others := [disk for disk in offer.verified(number) if disk != held.disk])
        ]
        for move in plan_moves(offered, self._offers.loads, self._settings.pass_moves):
            folder, number = move.key
            offer = self._offers.of_folder(folder)
            if offer is not None and offer.take(number, move.disk):
                self._offers.counts["swaps"] += 1
                self._offers.reopen(offer)
        lost = [
            (offer, number)
            for offer in self._offers
            for number, held in enumerate(offer.chosen)
            if number not in offer.unseen and (held is None or offer.is_elsewhere(number))
        ]
        for offer, number in lost[: self._settings.pass_moves]:
            self._offers.verifier.hasten(offer, number)

    def learn_loads(self, seconds: float) -> dict[str, float]:
        """Ask how loaded the disks are, and add what the seed reads there itself.

        Args:
            seconds: since the last time; 0 if that does not matter.

        Returns:
            Bytes per second sent of each title, by folder.
        """
        loads = {row.number: self._store.load(row.number) for row in self._store.disk_rows}
        known = {number: load for number, load in loads.items() if load is not None}
        self._offers.loads = DiskLoads(
            {number: load.expected_delay for number, load in known.items()},
            {number: load.rate for number, load in known.items() if load.rate > 0},
            self._leaving(),
        )
        if seconds <= 0:
            return {}
        before, self._sent = self._sent, self._swarm.uploads()
        rates: dict[str, float] = {}
        for offer in self._offers:
            sent = self._sent.get(offer.handle, 0) - before.get(offer.handle, 0)
            rates[offer.title.folder] = max(0, sent) / seconds
            for held in offer.chosen if sent > 0 else ():
                if held is not None:
                    self._offers.loads.add(held.disk, rates[offer.title.folder] / len(offer.chosen))
        return rates

    def _leaving(self) -> frozenset[int]:
        """Disks that are gone, do not answer, or are to be emptied."""
        return frozenset(
            row.number
            for row in self._store.disk_rows
            if row.state != "active"
            or row.number in self._gone
            or self._store.load(row.number) is None
        )
