"""The main process's side: what it does for its workers."""

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from toast.common.errors import ToastError
from vodserver.errors import ChannelError, ReadError
from vodserver.http.admission import Refusal, Ticket
from vodserver.http.connections import HttpStatistics
from vodserver.http.metrics import (
    HttpCounts,
    LoopProbe,
    Sample,
    render,
    samples_of_counts,
    samples_of_status,
)
from vodserver.http.status import SeedStatus, http_status, store_status
from vodserver.http.stream import Streams
from vodserver.settings import ServeSettings
from vodserver.store import Store, Title
from vodserver.workers.channel import Answer, Channel
from vodserver.workers.tally import Counts, Tally

__all__ = ["Desk", "Office"]

_LARGE_ANSWERS: Final = 4
"""Answers with a film's bytes that are made at a time for one worker: a bound on memory."""

_log = logging.getLogger(__name__)


class Office:
    """What there is once for all workers: the store, the sums, and who lets streams in.

    Args:
        store: opened by this process.
        settings: of the server.
        seed_status: asks the seed for its counters.
    """

    def __init__(
        self, store: Store, settings: ServeSettings, seed_status: SeedStatus | None
    ) -> None:
        self.store = store
        self.tally = Tally()
        self.streams = Streams(
            settings,
            disks=lambda: store.statistics().disks,
            sent_bytes=lambda: self.tally.bytes_sent,
            counts=HttpCounts(),
            streamed_bytes=lambda: self.tally.streamed_bytes,
        )
        self.probe = LoopProbe()
        self.lost = 0
        """Workers that ended though nobody wanted it."""
        self._seed_status = seed_status
        self._started = time.monotonic()

    async def status(self) -> dict[str, Any]:
        """What `/status` says."""
        total = self.tally.total()
        http = HttpStatistics(total.bytes_sent, total.connections, total.accepted, total.refused)
        streams = self.streams.admission.statistics()
        seconds = time.monotonic() - self._started
        stored = await store_status(self.store, self._seed_status)
        return http_status(seconds, http, streams) | stored

    async def metrics(self) -> str:
        """What `/metrics` says."""
        total = self.tally.total()
        lag = max(total.lag_seconds, self.probe.worst_seconds)
        return render(
            [
                *samples_of_status(await self.status()),
                *samples_of_counts(total.answers),
                *self.streams.samples(),
                Sample("vod_workers", self.tally.workers),
                Sample("vod_workers_lost_total", self.lost),
                Sample("vod_egress_waiting", total.waiting),
                Sample("vod_access_log_dropped_total", total.dropped),
                Sample("vod_loop_lag_seconds", float(lag)),
                Sample("vod_loop_late_total", total.late + self.probe.late),
            ]
        )


class Desk:
    """Answers one worker.

    Args:
        office: what there is for all.
        number: of the worker; no other one ever has it.
        channel: to the worker.
        listening: called once, when the worker serves, with its address and URLs.
        failed: called when the worker says that it cannot serve, with the message.
    """

    def __init__(
        self,
        office: Office,
        number: int,
        channel: Channel,
        *,
        listening: Callable[[dict[str, Any]], None],
        failed: Callable[[dict[str, Any]], None],
    ) -> None:
        self._office = office
        self.heard = 0
        """How many messages came from the worker."""
        self._number = number
        self._channel = channel
        self._listening = listening
        self._failed = failed
        self._tickets: dict[int, Ticket] = {}
        self._large = asyncio.Semaphore(_LARGE_ANSWERS)

    def close(self) -> None:
        """The worker is gone: nothing that it had is in use any more."""
        for ticket in self._tickets.values():
            self._office.streams.admission.release(ticket)
        self._tickets.clear()
        self._office.tally.end(self._number)

    async def asked(self, what: str, args: dict[str, Any]) -> Answer:
        """Answer a question.

        Raises:
            ToastError: it has no answer.
        """
        self.heard += 1
        match what:
            case "fetch":
                return await self._fetch(**args)
            case "admit":
                return self._admit(**args), b""
            case "doubt":
                return await self._check(**args), b""
            case "status":
                self._count(args)
                return {"status": await self._office.status()}, b""
            case "metrics":
                self._count(args)
                return {"text": await self._office.metrics()}, b""
        raise ChannelError(f"a worker asks for '{what}', which there is not")

    def told(self, what: str, args: dict[str, Any]) -> None:
        """Hear news.

        Raises:
            ChannelError: there is no such news.
        """
        self.heard += 1
        match what:
            case "counts":
                self._count(args)
            case "resident":
                for disk, parts, size in args["disks"]:
                    self._office.store.note_resident(disk, size, parts=parts)
            case "release":
                ticket = self._tickets.pop(args["ticket"], None)
                if ticket is not None:
                    self._office.streams.admission.release(ticket)
            case "blocks":
                self._office.store.doubt_blocks(args["title"])
            case "listening":
                self._listening(args)
            case "failed":
                self._failed(args)
            case _:
                raise ChannelError(f"a worker tells '{what}', which means nothing")

    def _count(self, args: dict[str, Any]) -> None:
        self._office.tally.note(self._number, Counts.parse(args["counts"]))

    def _title(self, title_id: str) -> Title:
        title = self._office.store.title(title_id)
        if title is None:
            raise ReadError(f"there is no title '{title_id}' any more")
        return title

    async def _fetch(
        self,
        *,
        title: str,
        at: int,
        end: int,
        turn: int,
        bytes: bool,  # noqa: A002 - the message's
    ) -> Answer:
        """Have a part of one extent in memory, or give it."""
        store, film = self._office.store, self._title(title)
        if not 0 <= at < end <= film.film_bytes:
            raise ReadError(f"bytes {at} to {end} are not in '{title}'")
        if bytes:
            return await self._give(film, at, end)
        # Once a worker did not find what memory should hold, the disks are asked all the same.
        ready = store.ready(film, at, end) if turn == 0 else None
        if ready is None:
            ready = await store.fetch(film, at, end)
        if ready.view is not None:
            return await self._give(film, at, end)
        return {"disk": ready.disk}, b""

    async def _give(self, film: Title, at: int, end: int) -> Answer:
        async with self._large:
            await self._channel.drain()
            data = await self._office.store.read(film, at, end)
        return {"disk": film.extents[at // film.extent_bytes].disks[0]}, data

    def _admit(
        self, *, ticket: int, title: str, start: int, end: int, rate: float
    ) -> dict[str, Any]:
        """Let a stream in, or not. At once: news that it has ended must not come before."""
        answer = self._office.streams.admit(self._title(title), start, end, rate)
        if isinstance(answer, Refusal):
            return dataclasses.asdict(answer)
        self._tickets[ticket] = answer
        return {}

    async def _check(self, *, folder: str, extent: int, disk: int) -> dict[str, Any]:
        """Look at a replica of which a worker found bytes in memory that are not right."""
        store = self._office.store
        for title in store.titles():
            if title.folder == folder and extent < len(title.extents):
                _log.info("a worker doubts extent %d of '%s' on disk %d", extent, title.id, disk)
                try:
                    return {"good": await store.check_replica(title, title.extents[extent], disk)}
                except ToastError:
                    break
        return {"good": False}
