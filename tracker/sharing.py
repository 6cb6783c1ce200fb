"""One memory for several trackers: what each hears, all know a moment later."""

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from tracker.ending import end_tasks
from tracker.errors import TrackerError
from tracker.news import MARK_BYTES, Journal, Report, encode_news, read_news, reports_of
from tracker.service import Service
from tracker.siblings import SiblingPlace, Siblings
from tracker.store import SharedStore, open_store

__all__ = ["Sharing"]

_LOG: Final = logging.getLogger("tracker")
_MACHINE_IDS: Final = (Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id"))


class Sharing:
    """The ways from this tracker to others.

    Args:
        service: whose announces are told, and who is told those of others.
        counts: what this tracker has counted.
    """

    def __init__(self, service: Service, counts: Callable[[], Mapping[str, float]]) -> None:
        self._service = service
        self._counts = counts
        self._clock = asyncio.get_running_loop().time
        self._author = secrets.token_bytes(MARK_BYTES)
        self._host = _host_mark()
        self._journal = service.journal = Journal(service.settings.max_peers)
        self._siblings: Siblings | None = None
        self._store: SharedStore | None = None
        self._chores: list[asyncio.Task[None]] = []

    async def start(self, place: SiblingPlace | None, store: str | None) -> None:
        """Find the others; what they know is known when this returns, as far as it is stored.

        Args:
            place: among the processes on one port.
            store: URL of a shared store.

        Raises:
            TrackerError: the store cannot be used.
        """
        if store is not None:
            keep = self._service.settings.expiry_seconds
            self._store = open_store(store, keep, self.heard)
            await self._store.connect()
            self._chores += map(asyncio.create_task, self._store.work())
        if place is not None:
            self._siblings = Siblings(place, self)
            await self._siblings.start()
        self._chores.append(asyncio.create_task(self._tell()))

    async def close(self) -> None:
        """Tell what is left, as far as that can be done at once, and let go."""
        with contextlib.suppress(Exception):
            self._tell_once()
            await asyncio.sleep(0)
        await end_tasks(self._chores)
        if self._siblings is not None:
            await self._siblings.close()
        if self._store is not None:
            await self._store.close()

    def statistics(self) -> dict[str, float]:
        """How well the others are reached."""
        told: dict[str, float] = {"news_dropped": self._journal.dropped}
        if self._siblings is not None:
            told["siblings"] = self._siblings.connected
        if self._store is not None:
            told["store_up"] = int(self._store.up)
            told["news_dropped"] += self._store.dropped
        return told

    def counts_of_others(self) -> list[Mapping[str, float]]:
        """What each of the other processes on this port has counted."""
        return [] if self._siblings is None else self._siblings.counts_of_others()

    def everything(self) -> Iterable[bytes]:
        """All that is known, for one who has just come."""
        now = self._clock()
        return self._encoded(list(reports_of(self._service.swarms, now)), now)

    def counts(self) -> Mapping[str, float]:
        """What this tracker has counted."""
        return self._counts()

    def heard(self, news: bytes) -> None:
        """Know what another has told."""
        now = self._clock()
        try:
            read = read_news(news, now, time.time())
        except TrackerError as error:
            _LOG.warning("news are not used: %s", error)
            return
        if read.author != self._author:
            read.tell(self._service.swarms, now, self._host)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(self._service.settings.share_seconds)
            self._tell_once()

    def _tell_once(self) -> None:
        news = list(self._encoded(self._journal.take(), self._clock()))
        if self._siblings is not None:
            self._siblings.send(news)
        if self._store is not None:
            self._store.send(news)

    def _encoded(self, reports: Iterable[Report], now: float) -> Iterable[bytes]:
        return encode_news(reports, now, time.time(), self._author, self._host)


def _host_mark() -> bytes:
    """What all processes of this machine share, and no other machine has."""
    hasher = hashlib.blake2b(digest_size=MARK_BYTES)
    for file in _MACHINE_IDS:
        with contextlib.suppress(OSError):
            hasher.update(file.read_bytes())
    return hasher.digest()
