"""The seed: verified extents to libtorrent, and away from what fails, without losing a peer.

libtorrent is given the published torrent, remapped onto one symbolic link for each extent: no film
is copied. It believes what it is told to have, so an extent is offered only when the very replica
that its link leads to was verified; when that fails, the link is led to another.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from vodserver.errors import SeedError
from vodserver.seed.links import Links
from vodserver.seed.offers import Offers
from vodserver.seed.replicas import Holder, raise_file_limit
from vodserver.seed.settings import SeedSettings
from vodserver.seed.swarm import PEER_ID_PREFIX, Listeners, Swarm
from vodserver.seed.watch import Watch
from vodserver.store import Store, Title
from vodserver.store.events import (
    DiskChanged,
    ReplicaBad,
    StoreEvent,
    TitleAdded,
    TitleChanged,
    TitleRemoved,
)

__all__ = ["Seed"]

_LINKS_NAME: Final = "seed"
_log = logging.getLogger(__name__)


class Seed:
    """A libtorrent session that seeds the titles of a store, those that come later too.

    Args:
        store: whose titles; it verifies the extents.
        settings: how.
    """

    def __init__(self, store: Store, settings: SeedSettings) -> None:
        self._store = store
        self._settings = settings
        self._swarm = Swarm(settings, Listeners(self._note_unreadable, self._note_dropped))
        self._links = Links()
        self._holder = Holder()
        self._offers = Offers(store, settings, self._swarm, self._links, self._holder)
        self._watch = Watch(store, settings, self._swarm, self._offers)
        self._lost_peers: dict[Any, set[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe: Callable[[], None] | None = None
        self.port = 0
        """TCP port it listens on, once started."""

    async def start(self) -> None:
        """Listen, and begin to verify and offer the titles, one after another.

        Raises:
            SeedError: the address or the port cannot be had, or the store's directory not written.
        """
        try:
            self._links.open(self._store.path.resolve() / _LINKS_NAME)
        except OSError as error:
            raise SeedError(f"the seed cannot make its directory in the store: {error}") from error
        most = raise_file_limit(self._settings.open_files, self._settings.connections)
        self._holder.most = most
        try:
            self.port = await self._swarm.start(most)
        except BaseException:
            self._links.close()
            raise
        self._unsubscribe = self._store.subscribe(self._note_event)
        self._watch.learn_loads(0.0)
        for title in self._store.titles():
            self._offers.begin(title)
        self._offers.note_progress()
        for _ in range(self._settings.verifications):
            self._run(self._offers.verifier.work, again=True)
        self._run(self._watch.watch, again=True)

    async def wait_offered(self) -> None:
        """Wait until every title was verified and is on offer, as far as it is good."""
        await self._offers.complete.wait()

    async def close(self) -> None:
        """Tell the trackers, close the connections, and wait until that is done."""
        if self._unsubscribe is None:
            return
        self._unsubscribe()
        self._unsubscribe = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._swarm.close()
        self._offers.close()
        await asyncio.to_thread(self._links.close)

    async def statistics(self) -> dict[str, Any]:
        """What was sent so far, and what is on offer.

        Returns:
            bytes_sent (payload and protocol), payload_bytes_sent, peers, titles_offered (whole or
            in part), titles_in_part, port, peer_id_prefix; extents, extents_verified (the first
            verification has come to them), extents_offered (good now), files_held, swaps (extents
            led to another replica while on offer), read_errors (reads that libtorrent failed at),
            reconnects (peers that were called back).
        """
        counters = await self._swarm.counters()
        offers = list(self._offers)
        offered = [offer for offer in offers if offer.handle is not None]
        extents = sum(len(offer.chosen) for offer in offers)
        return {
            "bytes_sent": counters.get("net.sent_bytes", 0),
            "payload_bytes_sent": counters.get("net.sent_payload_bytes", 0),
            "peers": counters.get("peer.num_peers_connected", 0),
            "titles_offered": len(offered),
            "titles_in_part": sum(offer.in_part for offer in offered),
            "port": self.port,
            "peer_id_prefix": PEER_ID_PREFIX,
            "extents": extents,
            "extents_verified": extents - sum(len(offer.unseen) for offer in offers),
            "extents_offered": sum(
                extent is not None for each in offered for extent in each.chosen
            ),
            "files_held": self._holder.held,
            "swaps": self._offers.counts["swaps"],
            "read_errors": self._offers.counts["read_errors"],
            "reconnects": self._offers.counts["reconnects"],
        }

    def _note_event(self, event: StoreEvent) -> None:
        match event:
            case TitleAdded(title):
                self._offers.begin(title)
            case TitleRemoved(title):
                self._offers.end(title)
            case TitleChanged(title):
                self._note_moved(title)
            case ReplicaBad(title, extent, disk):
                offer = self._offers.of_folder(title.folder)
                if offer is not None:
                    self._offers.leave(offer, extent.number, disk)
            case DiskChanged(number):
                self._watch.learn_loads(0.0)
                for offer in self._offers:
                    self._watch.note_disk(offer, number)

    def _note_moved(self, title: Title) -> None:
        """Follow replicas that moved. What is read still, is held open until another is good."""
        offer = self._offers.get(title.id)
        if offer is None or offer.title.folder != title.folder:
            self._offers.end(title)
            self._offers.begin(title)
            return
        offer.title = title
        for number, held in enumerate(offer.chosen):
            if number in offer.unseen:
                continue
            if (
                offer.is_misplaced(number) and not self._offers.pick(offer, number)
            ) or held is None:
                self._offers.verifier.hasten(offer, number)
        if not offer.unseen:
            self._offers.verifier.add_spares(offer)

    def _note_unreadable(self, link: Path) -> None:
        """Note a read that failed: libtorrent told the peer that the piece is not there."""
        extent = self._links.extent_of(link)
        offer = None if extent is None else self._offers.of_folder(extent[0])
        if extent is None or offer is None or offer.handle is None:
            return
        self._offers.counts["read_errors"] += 1
        number = extent[1]
        offer.refused.add(number)
        offer.waiting = None  # whoever is connected now may have been refused
        held = offer.chosen[number]
        if held is None:
            return
        if held.is_unchanged() and asyncio.get_running_loop().time() < held.since + 1.0:
            self._offers.reopen(offer)  # the answer to a read of the one before
            return
        # One fault is often many: what else of this disk has changed?
        others = [other for other in offer.on_disk(held.disk) if other != number]
        self._offers.leave(offer, number, held.disk)
        self._watch.look_at(offer, others)

    def _note_dropped(self, handle: Any, address: str) -> None:
        """Note a peer that was let go: it could not be served a hundred times in a row."""
        waiting = self._lost_peers.setdefault(handle, set())
        waiting.add(address)
        if len(waiting) == 1:
            self._run(lambda: self._call_back(handle))

    async def _call_back(self, handle: Any) -> None:
        await asyncio.sleep(0)  # they are let go together
        addresses = self._lost_peers.pop(handle, set())
        self._offers.counts["reconnects"] += len(addresses)
        await self._swarm.call_back(handle, addresses)

    def _run(self, work: Callable[[], Awaitable[None]], *, again: bool = False) -> None:
        """Have something done; what is to be done for ever is begun again when it fails."""

        async def guarded() -> None:
            while True:
                try:
                    await work()
                except Exception:  # noqa: BLE001 - a task has no caller to tell
                    _log.exception("the seed failed at some of its work; it goes on with the rest")
                if not again:
                    return
                await asyncio.sleep(self._settings.watch_seconds)

        task = asyncio.create_task(guarded(), name="seed")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
