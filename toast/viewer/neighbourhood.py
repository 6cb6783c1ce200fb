"""Announcing to the trackers, and connecting to whom the neighbour policy chooses."""

import asyncio
import contextlib
import math
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import numpy as np

from toast.common.waiting import wait_event
from toast.policy.neighbours import Candidate, Neighbours, company, is_worth_calling
from toast.policy.patience import Patience, Showing
from toast.swarm import ANY_HOST, Announcer, FilmSwarm, Neighbour, Peer, SwarmError, SwarmSession
from toast.swarm.announcer import Announcement

__all__ = ["Neighbourhood", "Watching"]

_RETRY_SECONDS = 30.0
_TRACKER_RETRY_SECONDS = 3.0
_LONELY_SECONDS = 5.0
_RESTING_SECONDS = 15.0
_TOGETHER_SECONDS = 0.25
_LOOK_SECONDS = 1.0
_FRESH_SECONDS = 90.0
_MOST_KNOWN = 1000
_STOP_SECONDS = 1.0
_CONNECT_SECONDS = 2.5
_EAGER_SECONDS = 0.4


class Watching(Protocol):
    """What the announces tell of the viewing."""

    @property
    def own_position(self) -> float:
        """Film time of the playhead, in seconds."""

    @property
    def is_announcing_playhead(self) -> bool:
        """Whether the position means anything yet."""

    @property
    def need_seconds(self) -> float:
        """How far ahead of us someone must watch to have in time what we will need."""

    @property
    def film_rate(self) -> float:
        """Bytes of film per second."""

    def left_bytes(self) -> int:
        """Bytes of the film that are missing."""

    def transferred(self) -> tuple[int, int]:
        """Payload bytes sent and received."""


class Neighbourhood:
    """The swarm around one viewer.

    Args:
        session: whose port is announced.
        http: for the announces; the caller closes it.
        trackers: announce URLs.
        info_hash: the film's, 20 bytes.
        policy: whom to connect to.
        rng: the policy's randomness.
        patience_seconds: how long joining waits for the first answer.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        session: SwarmSession,
        *,
        http: aiohttp.ClientSession,
        trackers: tuple[str, ...],
        info_hash: bytes,
        policy: Neighbours,
        rng: np.random.Generator,
        patience_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._policy = policy
        self._rng = rng
        self._clock = clock
        self._other_trackers = [
            url for url in trackers if urlsplit(url).scheme not in {"http", "https"}
        ]
        # On a machine with IPv4 and IPv6, a tracker is told of both.
        both = session.settings.listen_host == ANY_HOST
        self._announcers = [
            tuple(
                Announcer(
                    http,
                    url,
                    info_hash=info_hash,
                    peer_id=session.peer_id,
                    port=session.port,
                    family=family,
                )
                for family in ((socket.AF_INET, socket.AF_INET6) if both else (None,))
            )
            for url in trackers
            if url not in self._other_trackers
        ]
        self._telling: set[asyncio.Task[None]] = set()
        self._known: dict[tuple[str, int], tuple[Peer, float]] = {}
        self._tried: dict[tuple[str, int], float] = {}
        self._connected: set[tuple[str, int]] = set()
        self._patience_with = Patience()
        self._wake = asyncio.Event()
        self._patience = patience_seconds
        self._patience_with_peers = _FRESH_SECONDS
        self._announced_at = 0.0
        self._hope_until = clock() + patience_seconds
        self.last_error: str | None = None
        self.together = 1

    def lead_seconds(self, own_position: float) -> float:
        """How far the foremost neighbour watches ahead of us, in film seconds.

        What it needs, it will have that long before we need it. 0 while neighbours are expected
        any moment, +inf if nobody watches ahead of us: then waiting brings nothing.
        """
        now = self._clock()
        if self._announcers and now < self._hope_until:
            return 0.0
        reliable = self._connected - self._patience_with.weak
        leads = [
            peer.playhead + now - seen - own_position
            for address, (peer, seen) in self._known.items()
            if address in reliable and peer.playhead is not None and not peer.operator
        ]
        return max((lead for lead in leads if lead > 0), default=math.inf)

    def wake(self) -> None:
        """Someone came or went: choose again."""
        self._wake.set()

    async def run(self, watching: Watching, swarm: FilmSwarm) -> None:
        """Join the swarm, and keep announcing and choosing until cancelled; then say goodbye."""
        for url in self._other_trackers:
            swarm.use_udp_tracker(url)
        self._hope_until = self._clock() + self._patience
        announcing = asyncio.create_task(self._announce_all(watching, event="started"))
        try:
            # A tracker that is slow or away must not keep the film from starting.
            await asyncio.wait({announcing}, timeout=self._patience)
            swarm.start(self._choose(watching, swarm))
            next_announce = self._clock() + await announcing
            while True:
                for address in self._choose(watching, swarm):
                    swarm.connect(address)
                complete = watching.left_bytes() == 0
                self._session.set_wanting(self, wanting=not complete)
                chosen_at = self._clock()
                if complete:  # who needs nothing waits to be found
                    rest = min(_RESTING_SECONDS, next_announce - chosen_at)
                    await asyncio.sleep(max(_TOGETHER_SECONDS, rest))
                else:
                    if not self._connected:
                        next_announce = min(next_announce, self._announced_at + _LONELY_SECONDS)
                    most = min(1.0, next_announce - chosen_at)
                    if await wait_event(self._wake, max(0.05, most)):
                        # In a crowd somebody comes or goes all the time.
                        await asyncio.sleep(chosen_at + _TOGETHER_SECONDS - self._clock())
                if self._clock() >= next_announce:
                    next_announce = self._clock() + await self._announce_all(watching, event="")
        finally:
            self._session.set_wanting(self, wanting=False)
            announcing.cancel()
            for telling in self._telling:
                telling.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._announce_all(watching, event="stopped")

    async def _announce_all(self, watching: Watching, *, event: str) -> float:
        """Tell every tracker; returns seconds until the next time."""
        sent, received = watching.transferred()
        position = watching.own_position if watching.is_announcing_playhead else None
        self._announced_at = self._clock()
        facts = _AnnounceFacts(sent, received, watching.left_bytes(), position, event)
        answers = await asyncio.gather(
            *(self._announce(pair, facts) for pair in self._announcers), return_exceptions=True
        )
        waits = [60.0] if not self._announcers else []
        failures: list[str] = []
        for answer in answers:
            if isinstance(answer, SwarmError):
                failures.append(str(answer))
                waits.append(_TRACKER_RETRY_SECONDS)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                waits.append(self._learn(answer))
        self.last_error = failures[0] if failures else None
        return min(waits)

    async def _announce(self, pair: tuple[Announcer, ...], facts: "_AnnounceFacts") -> Announcement:
        """Tell one tracker, over the first kind of address that it can be reached by.

        Raises:
            SwarmError: it cannot be told.
        """
        first, *others = pair
        try:
            answer = await facts.tell(first)
        except SwarmError:
            if not others:
                raise
            return await facts.tell(others[0])
        for other in others:
            telling = asyncio.create_task(self._announce_besides(other, facts))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)
            if facts.event == "stopped":
                await telling
        return answer

    async def _announce_besides(self, announcer: Announcer, facts: "_AnnounceFacts") -> None:
        """Over the other kind of address too: most machines, or trackers, have only one."""
        with contextlib.suppress(SwarmError):
            self._learn(await facts.tell(announcer))
            self._wake.set()

    def _learn(self, answer: Announcement) -> float:
        """Remember whom a tracker named; returns seconds until it wants to hear from us."""
        now = self._clock()
        self._patience_with_peers = max(_FRESH_SECONDS, 2 * answer.interval)
        self._known.update({peer.address: (peer, now) for peer in answer.peers})
        return answer.interval

    def _choose(self, watching: Watching, swarm: FilmSwarm) -> tuple[tuple[str, int], ...]:
        now = self._clock()
        self._forget(now)
        neighbours = swarm.neighbours(_LOOK_SECONDS)
        self._connected = {neighbour.address for neighbour in neighbours}
        self._part(neighbours, watching, swarm, now)
        for address in swarm.departed() & self._tried.keys():
            # It hung up, or there is nobody: that is known at once, and not after a while.
            self._tried[address] = min(self._tried[address], now - _CONNECT_SECONDS)
        waiting = {
            address: now - since
            for address, since in self._tried.items()
            if now - since < _CONNECT_SECONDS and address not in self._connected
        }
        # Who has not answered after a moment is waited for, but not relied on.
        connecting = {address for address, age in waiting.items() if age < _EAGER_SECONDS}
        out = self._out_of_question(swarm.banned_hosts, now) | swarm.banned
        complete = watching.left_bytes() == 0
        if complete:
            self._part_with_complete(neighbours, swarm)
        known = (
            self._candidate(peer, now - seen)
            for peer, seen in self._known.values()
            if peer.address not in out and peer.address not in waiting.keys() - connecting
        )
        candidates = [each for each in known if is_worth_calling(each, complete=complete)]
        self.together = 1 + len(company(watching.own_position, candidates))
        for peer in (peer for peer, _ in self._known.values() if peer.operator):
            swarm.note_operator(peer.address)
        chosen = self._policy.choose(
            watching.own_position,
            candidates,
            self._connected | connecting,
            {neighbour.address: neighbour.down_rate for neighbour in neighbours},
            watching.need_seconds,
            self._rng,
        )
        self._tried.update(dict.fromkeys(chosen, now))
        latest = max((self._tried[address] for address in (*waiting, *chosen)), default=0)
        self._hope_until = latest + _CONNECT_SECONDS if latest else now
        return chosen

    def _part(
        self, neighbours: Sequence[Neighbour], watching: Watching, swarm: FilmSwarm, now: float
    ) -> None:
        """Hang up on those who were asked for long and have said nothing."""
        showing = [
            (
                neighbour.address,
                Showing(
                    neighbour.received_bytes,
                    asked=neighbour.requests > 0,
                    # libtorrent chokes whoever wants nothing of it, too.
                    choking=neighbour.choking_us and neighbour.is_wanted,
                    called=not neighbour.incoming,
                ),
            )
            for neighbour in neighbours
        ]
        parting = self._patience_with.observe(now, showing, watching.film_rate)
        if parting:
            swarm.hang_up(*parting)
            self._connected.difference_update(parting)

    def _part_with_complete(self, neighbours: Sequence[Neighbour], swarm: FilmSwarm) -> None:
        """Two who need nothing take only places of those who do."""
        done = {each.address for each in neighbours if each.operator or each.pieces.all()}
        others = {neighbour.address[0] for neighbour in neighbours if neighbour.address not in done}
        # Whoever shares a host with somebody who lacks something stays: all there are hung up on.
        parting = [address for address in done if address[0] not in others]
        if parting:
            swarm.hang_up(*parting)
            self._connected.difference_update(parting)

    def _out_of_question(self, banned_hosts: frozenset[str], now: float) -> set[tuple[str, int]]:
        """Whom the policy must not choose: liars, the silent, the weak, and who is not there."""
        failed = {
            address
            for address, since in self._tried.items()
            if _CONNECT_SECONDS <= now - since < _RETRY_SECONDS and address not in self._connected
        }
        weak, enough = self._patience_with.weak, self._patience_with.is_enough
        return failed | {
            address
            for address in self._known
            if address[0] in banned_hosts
            or address in weak
            or (enough and address not in self._connected)
            or self._patience_with.is_shunned(address, now)
        }

    def _forget(self, now: float) -> None:
        """Drop whom no tracker has named for long: a tracker may name new ones for ever."""
        self._known = {
            address: (peer, seen)
            for address, (peer, seen) in self._known.items()
            if now - seen < self._patience_with_peers
        }
        for address in list(self._known)[:-_MOST_KNOWN]:
            del self._known[address]
        self._tried = {
            address: since for address, since in self._tried.items() if address in self._known
        }

    @staticmethod
    def _candidate(peer: Peer, age: float) -> Candidate:
        return Candidate(
            address=peer.address,
            # It has gone on playing since the tracker answered.
            position=None if peer.playhead is None else peer.playhead + age,
            complete=peer.complete,
            operator=peer.operator,
        )


@dataclass(frozen=True, slots=True)
class _AnnounceFacts:
    """What one round of announces tells."""

    uploaded: int
    downloaded: int
    left: int
    playhead: float | None
    event: str

    async def tell(self, announcer: Announcer) -> Announcement:
        return await announcer.announce(
            uploaded=self.uploaded,
            downloaded=self.downloaded,
            left=self.left,
            playhead=self.playhead,
            event=self.event,
        )
