"""A crowd of peers around a film: announced to its tracker, some of them coming and going."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp
import numpy as np

from experiments.adversaries.conducts import create_conduct
from experiments.adversaries.peer import Peer, SharedFilm
from experiments.errors import LabError
from toast.swarm import Announcer, SwarmError

__all__ = ["Churn", "Crowd"]

_AWAY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Churn:
    """How often peers vanish."""

    share_per_minute: float
    """Of all peers, so many vanish each minute; each comes back."""
    away_seconds: float = _AWAY_SECONDS
    """For how long they are gone."""


class Crowd:
    """Peers on addresses of their own, as an async context.

    They tell the tracker that they have the whole film, or, with a `lead`, that they watch so far
    ahead of its beginning: then they are just those whom a viewer would choose.

    Args:
        film: what they claim to have.
        conducts: of each peer, by name.
        hosts: their addresses, one each.
        tracker: announce URL.
        rng: all chance.
        churn: how often they vanish; None: never.
        lead_seconds: film position that they announce; None: complete.
        uplink: bytes/second that each can send at the most; None: as fast as it can.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        film: SharedFilm,
        conducts: Sequence[str],
        *,
        hosts: Sequence[str],
        tracker: str,
        rng: np.random.Generator,
        churn: Churn | None = None,
        lead_seconds: float | None = None,
        uplink: float | None = None,
        clock: Callable[[], float],
    ) -> None:
        if len(hosts) < len(conducts):
            raise LabError("each peer needs an address of its own")
        self.peers = tuple(
            Peer(film, create_conduct(name, rng), host, uplink=uplink, clock=clock)
            for name, host in zip(conducts, hosts, strict=False)
        )
        self.vanished = 0
        self._info_hash = film.info_hash
        self._film_bytes = film.geometry.film_bytes
        self._tracker = tracker
        self._rng = rng
        self._churn = churn
        self._lead = lead_seconds
        self._churning: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Listen, and tell the tracker.

        Raises:
            LabError: the tracker cannot be told.
        """
        try:
            await asyncio.gather(*(self._arrive(peer) for peer in self.peers))
        except BaseException:
            await self._stop()
            raise
        if self._churn is not None and self.peers:
            self._churning = asyncio.create_task(self._come_and_go(self._churn))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()
        # Other crowds may follow on this tracker: these peers are no longer its.
        await asyncio.gather(*(self._announce(peer, "stopped") for peer in self.peers))

    async def _stop(self) -> None:
        if self._churning is not None:
            self._churning.cancel()
            await asyncio.gather(self._churning, return_exceptions=True)
        for peer in self.peers:
            await peer.stop()

    async def _come_and_go(self, churn: Churn) -> None:
        """One after the other, at even intervals: half hang up, half just fall silent."""
        pause = 60.0 / (churn.share_per_minute * len(self.peers))
        returning: set[asyncio.Task[None]] = set()
        try:
            for turn in itertools.count():
                await asyncio.sleep(pause)
                # Those who are in use are those whose loss is felt.
                here = [peer for peer in self.peers if peer.is_listening]
                if not here:
                    continue
                weights = np.array([1.0 + peer.sent_bytes for peer in here])
                peer = here[int(self._rng.choice(len(here), p=weights / weights.sum()))]
                self.vanished += 1
                if turn % 2:
                    peer.freeze()
                else:
                    await peer.stop()
                task = asyncio.create_task(self._return(peer, churn.away_seconds))
                returning.add(task)
                task.add_done_callback(returning.discard)
        finally:
            for task in returning:
                task.cancel()
            await asyncio.gather(*returning, return_exceptions=True)

    async def _return(self, peer: Peer, away_seconds: float) -> None:
        await asyncio.sleep(away_seconds)
        await peer.stop()
        await self._arrive(peer)

    async def _arrive(self, peer: Peer) -> None:
        await peer.start()
        await self._announce(peer, "started")

    async def _announce(self, peer: Peer, event: str) -> None:
        # From the peer's own address: that is where the tracker sends others.
        connector = aiohttp.TCPConnector(local_addr=(peer.address[0], 0))
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as http:
            announcer = Announcer(
                http,
                self._tracker,
                info_hash=self._info_hash,
                peer_id=peer.peer_id,
                port=peer.address[1],
            )
            try:
                await announcer.announce(
                    uploaded=0,
                    downloaded=0,
                    left=0 if self._lead is None else self._film_bytes // 2,
                    playhead=self._lead,
                    event=event,
                )
            except SwarmError as error:
                raise LabError(f"the tracker does not take our peers: {error}") from error
