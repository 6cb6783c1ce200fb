"""Peers that are slow, silent, poisonous or gone make nothing worse than plain HTTP.

A player reads the film over HTTP at the film's pace and counts its own halts. It reads from the
VoD server, and then from viewers whose swarms are hostile, each alike.
"""

import asyncio
import contextlib
import itertools
import os
from dataclasses import dataclass, field

import aiohttp
import numpy as np
import pytest

from experiments.adversaries import Crowd, Poisoner, SharedFilm
from experiments.watching import PacedReader, Watched
from toast.gateway import Gateway
from toast.swarm import SessionSettings, SwarmSession
from toast.viewer import FilmReader, Source, ViewerSettings, assemble_viewer
from toast.viewer.attendance import Pace
from tracker.http import serve_tracker
from tracker.settings import TrackerSettings

pytestmark = [pytest.mark.lab, pytest.mark.slow]

PEERS = 9
_HOSTS = (
    f"127.{1 + os.getpid() % 250}.{a}.{b}"
    for a, b in itertools.product(range(90, 250), range(1, 250))
)


@dataclass
class Outcome:
    """What a viewing came to, by the player and by the viewer."""

    watched: Watched
    report: dict
    banned: set = field(default_factory=set)
    poisoners: set = field(default_factory=set)
    vanished: int = 0
    asked: int = 0
    sent: int = 0


class Cinema:
    """One film on a VoD server, and players that watch it."""

    def __init__(self, house, http, film, metainfo):
        self.house, self.http, self.film, self.metainfo = house, http, film, metainfo
        self.shared = SharedFilm(film.read_bytes(), metainfo.geometry, metainfo.info_hash)
        self.clock = asyncio.get_running_loop().time
        self.line = None

    def player(self, stack):
        file = stack.enter_context(self.film.open("rb"))
        return PacedReader(self.metainfo.timemap, file, clock=self.clock)

    @property
    def origin(self):
        """The film's URL at its server, or through the line to it."""
        return self.line.url if self.line is not None else self.metainfo.origins[0]

    async def plain(self) -> Watched:
        """Watch from the VoD server itself."""
        with contextlib.ExitStack() as stack:
            player = self.player(stack)
            async with aiohttp.ClientSession(auto_decompress=False) as http:
                since = self.clock()
                return await player.watch(http, self.origin, since=since)

    @contextlib.asynccontextmanager
    async def viewer(self, folder, neighbours, tracker):
        async with contextlib.AsyncExitStack() as stack:
            host = next(_HOSTS)
            session = SwarmSession(SessionSettings(listen_host=host))
            stack.push_async_callback(session.close)
            await session.wait_listening()
            http = await stack.enter_async_context(
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(local_addr=(host, 0), limit=8),
                    auto_decompress=False,
                )
            )
            yield assemble_viewer(
                Source(self.metainfo, (self.origin,), (tracker,)),
                settings=ViewerSettings(folder=folder, neighbours=neighbours, pace=Pace.READERS),
                session=session,
                http=http,
                rng=np.random.default_rng(1),
            )

    async def hostile(self, folder, conducts, *, neighbours="ahead", churn=None) -> Outcome:
        """Watch through a viewer among such peers."""
        async with contextlib.AsyncExitStack() as stack:
            settings = TrackerSettings(host="127.0.0.1", port=0)
            tracker = await stack.enter_async_context(serve_tracker(settings, seed=3))
            crowd = Crowd(
                self.shared,
                conducts,
                hosts=[next(_HOSTS) for _ in conducts],
                tracker=tracker.announce_url,
                rng=np.random.default_rng(2),
                churn=churn,
                clock=self.clock,
            )
            await stack.enter_async_context(crowd)
            viewer = await stack.enter_async_context(
                self.viewer(folder, neighbours, tracker.announce_url)
            )
            files = stack.enter_context(contextlib.ExitStack())
            player = self.player(files)
            http = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
            since = self.clock()
            await viewer.open()
            gateway = await stack.enter_async_context(Gateway(FilmReader(viewer)))
            running = asyncio.create_task(viewer.run())
            try:
                watched = await player.watch(http, gateway.url, since=since)
            finally:
                viewer.stop()
                await running
            report = await viewer.report()
            banned = viewer._session.banned_hosts
            return Outcome(
                watched,
                report,
                banned=set(banned),
                poisoners={
                    p.address[0]
                    for p in crowd.peers
                    if isinstance(p.conduct, Poisoner) and p.conduct.poisoned
                },
                vanished=crowd.vanished,
                asked=sum(p.asked for p in crowd.peers),
                sent=sum(p.sent_bytes for p in crowd.peers),
            )
