"""Clients that play over HTTP, by the same account as the simulator's."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from experiments.arrays.playback import Playback
from experiments.arrays.result import ArrayResult, conclude
from experiments.errors import LabError

__all__ = ["Client", "PacedClient", "play_streams"]

_HEAD_START_SECONDS: Final = 1.0


@dataclass(slots=True)
class Client:
    """A paced client, as `Playback` says; it asks for an extent at a time.

    Attributes:
        url: of the film, from anything that serves ranges.
        playback: its account.
        extent_bytes: that it asks for at a time.
        extents: of the film, which goes round after them; None if it is longer than the run.
        responses: seconds that each read took.
        failures: answers that were not what it asked for; the first one ends it.
        retry_seconds: after which it was told to come back; None if it was let in.
    """

    url: str
    playback: Playback
    extent_bytes: int
    extents: int | None = None
    responses: list[float] = field(default_factory=list)
    failures: int = 0
    retry_seconds: float | None = None

    async def play(self, http: aiohttp.ClientSession, begin: float, until: float) -> None:
        """Play from `begin` on until the run is over, monotonic seconds."""
        await asyncio.sleep(max(begin - time.monotonic(), 0.0))
        # What would be answered later is of no account.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                await self._play(http)

    async def _play(self, http: aiohttp.ClientSession) -> None:
        while not self.playback.is_complete:
            due, now = self.playback.due(), time.monotonic()
            if due is not None and due > now:
                await asyncio.sleep(due - now)
                continue
            extent = self.playback.received
            first = (extent if self.extents is None else extent % self.extents) * self.extent_bytes
            last = first + self.extent_bytes - 1
            async with http.get(self.url, headers={"Range": f"bytes={first}-{last}"}) as answer:
                body = await answer.read()
            if answer.status != 206 or len(body) != self.extent_bytes:
                self.failures += 1
                return
            done = time.monotonic()
            self.responses.append(done - now)
            self.playback.receive(done)


@dataclass(slots=True)
class PacedClient(Client):
    """A client of a stream that the server paces; `extent_bytes` are of a part of its account."""

    async def _play(self, http: aiohttp.ClientSession) -> None:
        asked = time.monotonic()
        async with http.get(self.url) as answer:
            if answer.status == 503 and answer.headers.get("Retry-After", "").isdecimal():
                self.retry_seconds = float(answer.headers["Retry-After"])
                return
            if answer.status != 200:
                self.failures += 1
                return
            have = 0
            async for data in answer.content.iter_any():
                have += len(data)
                now = time.monotonic()
                while (self.playback.received + 1) * self.extent_bytes <= have:
                    self.playback.receive(now)
                if not self.responses and self.playback.started is not None:
                    self.responses.append(now - asked)
        if not self.playback.is_complete:
            self.failures += 1


async def play_streams(
    clients: Sequence[Client],
    begins: Sequence[float],
    *,
    hold_seconds: float,
    start: float | None = None,
    model_streams: float = 0.0,
) -> ArrayResult:
    """Let clients play side by side.

    Args:
        clients: one for each stream.
        begins: when each begins, seconds from the beginning of the run.
        hold_seconds: how long the run goes on after the last has begun.
        start: when the run begins, monotonic seconds; in a second if not given.
        model_streams: N of the closed form, for the result.

    Raises:
        LabError: a client was not given what it asked for.
    """
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        start = time.monotonic() + _HEAD_START_SECONDS if start is None else start
        until = start + max(begins) + hold_seconds
        async with asyncio.TaskGroup() as tasks:
            for client, begin in zip(clients, begins, strict=True):
                tasks.create_task(client.play(http, start + begin, until))
    if failures := sum(client.failures for client in clients):
        raise LabError(f"{failures} streams were not given what they asked for")
    let_in = [client for client in clients if client.retry_seconds is None]
    for client in let_in:
        client.playback.end(until)
    responses = [seconds for client in clients for seconds in client.responses]
    return conclude(
        incidents=[client.playback.incidents for client in let_in],
        responses=responses,
        refused=len(clients) - len(let_in),
        lost=0,
        reads=len(responses),
        busy_share=None,
        hit_share=None,
        model_streams=model_streams,
    )
