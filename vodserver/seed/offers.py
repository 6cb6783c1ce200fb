"""The titles on offer: verified, told to the swarm, and led to other replicas."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator

from vodserver.seed.choice import DiskLoads
from vodserver.seed.links import Links
from vodserver.seed.offer import Offer
from vodserver.seed.replicas import Holder
from vodserver.seed.settings import SeedSettings
from vodserver.seed.swarm import Swarm
from vodserver.seed.verifier import Verifier
from vodserver.store import Store, Title

__all__ = ["Offers"]

_log = logging.getLogger(__name__)


class Offers:
    """What the seed offers, and what it does when a replica is not good any more.

    Args:
        store: whose titles.
        settings: of the seed.
        swarm: where they are offered.
        links: what libtorrent is given.
        holder: opens replicas.

    Attributes:
        verifier: what is to be verified.
        loads: what is known of the disks.
        counts: `swaps`, `read_errors`, `reconnects`, since the start.
        complete: every title was verified, and is on offer as far as it is good.
    """

    def __init__(
        self, store: Store, settings: SeedSettings, swarm: Swarm, links: Links, holder: Holder
    ) -> None:
        self.verifier = Verifier(self._check, self._check_spares)
        self.loads = DiskLoads()
        self.counts: Counter[str] = Counter()
        self.complete = asyncio.Event()
        self._store = store
        self._settings = settings
        self._swarm = swarm
        self._links = links
        self._holder = holder
        self._offers: dict[str, Offer] = {}
        self._by_folder: dict[str, Offer] = {}

    def __iter__(self) -> Iterator[Offer]:
        return iter(list(self._offers.values()))

    def get(self, title_id: str) -> Offer | None:
        """The title of this id, if it is here."""
        return self._offers.get(title_id)

    def of_folder(self, folder: str) -> Offer | None:
        """The title whose extents are in this folder, if it is here."""
        return self._by_folder.get(folder)

    def close(self) -> None:
        """Let go of all files and links."""
        for offer in self:
            offer.close()
        self._offers.clear()
        self._by_folder.clear()

    def begin(self, title: Title) -> None:
        """Take in a title: it is verified, and offered when it is."""
        offer = Offer(title, self._store, self._links, self._holder)
        self._offers[title.id] = offer
        self._by_folder[title.folder] = offer
        self.complete.clear()
        self.verifier.begin(offer)

    def end(self, title: Title) -> None:
        """Offer a title no longer."""
        offer = self._offers.pop(title.id, None)
        if offer is None:
            return
        self._by_folder.pop(offer.title.folder, None)
        if offer.handle is not None:
            self._swarm.remove(offer.handle)
            offer.handle = None
        offer.close()
        self.note_progress()

    def is_current(self, offer: Offer) -> bool:
        """Whether a title is here still."""
        return self._by_folder.get(offer.title.folder) is offer

    async def _check(self, offer: Offer, number: int) -> None:
        """Have an extent that is not there, or not where it should be, read from a good replica."""
        if len(offer.unseen) == len(offer.chosen):
            offer.offered_at = asyncio.get_running_loop().time()
        if self.is_current(offer) and (offer.chosen[number] is None or offer.is_misplaced(number)):
            try:
                await self._find(offer, number)
            except Exception:  # noqa: BLE001 - the other extents are to be verified all the same
                _log.exception("seed: extent %d of '%s' cannot be verified", number, offer.title.id)
        if not self.is_current(offer):
            return
        offer.unseen.discard(number)
        if not offer.unseen or self._is_time_to_offer(offer):
            await self._offer(offer)
        self.note_progress()

    async def _find(self, offer: Offer, number: int) -> None:
        found = self.pick(offer, number)
        for disk in [] if found else self.loads.ranked(offer.unverified(number)):
            if await offer.verify(number, disk) and self.is_current(offer):
                found = self.pick(offer, number)
                break
        # What was verified and is still open may be read on, wherever it is.
        if number in offer.unseen and not found and self.is_current(offer):
            _log.warning("seed: extent %d of '%s' has no good replica", number, offer.title.id)

    async def _check_spares(self, offer: Offer, number: int) -> None:
        for disk in offer.unverified(number):
            if not self.is_current(offer):
                return
            replica = (offer.title.folder, number, disk)
            if replica not in self._store.bad_replicas():
                await offer.verify(number, disk)

    def _is_time_to_offer(self, offer: Offer) -> bool:
        passed = asyncio.get_running_loop().time() - offer.offered_at
        due: float = self._settings.offer_seconds * 2**offer.offers
        return passed >= due

    async def _offer(self, offer: Offer) -> None:
        """Tell peers of what is good now. Those who are there connect anew, so this is rare."""
        have = [held is not None for held in offer.chosen]
        more = any(now and not told for now, told in zip(have, offer.advertised, strict=True))
        if offer.adding or (offer.handle is not None and not more):
            return
        offer.adding = True
        try:
            endpoints: list[tuple[str, int]] = []
            if offer.handle is not None:
                endpoints = await self._swarm.endpoints(offer.handle)
                if not self.is_current(offer):
                    return
                have = [held is not None for held in offer.chosen]
                self._swarm.remove(offer.handle)
            offer.advertised = have
            offer.handle = self._swarm.add(offer.title, offer.links(), have, self._store.path)
            offer.refused.clear()
            offer.offers += 1
            offer.offered_at = asyncio.get_running_loop().time()
            if endpoints and offer.handle is not None:
                self.counts["reconnects"] += len(endpoints)
                self._swarm.dial(offer.handle, endpoints)
        finally:
            offer.adding = False
        if not offer.unseen:
            self.verifier.add_spares(offer)

    def note_progress(self) -> None:
        """See whether everything is verified and offered."""
        if all(not offer.unseen and not offer.adding for offer in self._offers.values()):
            self.complete.set()

    def leave(self, offer: Offer, number: int, disk: int) -> None:
        """Trust a replica no longer, and have another read if it is the one on offer."""
        offer.distrust(number, disk)
        held = offer.chosen[number]
        if held is None or held.disk != disk:
            return
        if not self.pick(offer, number):
            self.hide(offer, number)

    def hide(self, offer: Offer, number: int) -> None:
        """Have nothing read for an extent until one of its replicas is verified anew."""
        _log.warning("seed: extent %d of '%s' is not offered now", number, offer.title.id)
        offer.hide(number)
        self.reopen(offer)
        self.verifier.hasten(offer, number)

    def pick(self, offer: Offer, number: int, *, avoid: int | None = None) -> bool:
        """Have the best verified replica of an extent read, other than that on `avoid`."""
        before = offer.chosen[number]
        if not offer.pick(number, self.loads, avoid=avoid):
            return False
        if before is not None:
            self.counts["swaps"] += 1
        held = offer.chosen[number]
        if held is not None:  # so that titles verified now spread over the disks
            self.loads.seconds.setdefault(held.disk, 0.0)
            self.loads.seconds[held.disk] += 1e-6
        if offer.handle is not None:
            self.reopen(offer)
        return True

    def reopen(self, offer: Offer) -> None:
        """Have libtorrent follow the links of a title."""
        if offer.handle is not None:
            self._swarm.reopen(offer.handle)
