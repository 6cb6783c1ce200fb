"""`toast daemon` as a real program in a test, and a client of it."""

import asyncio
import signal
from pathlib import Path

import aiohttp

from experiments.processes import program
from tests.toast.swarm.world import make_torrent, random_film
from toast.common.timemap import TimeMap
from toast.swarm import parse_metainfo

READY_SECONDS = 60.0
FILM_SECONDS = 40.0


def torrent_of(number, *, size=400_000, trackers=("http://127.0.0.1:9/announce",)):
    """(.torrent, content) of a film of random bytes; by default nobody has it."""
    film = random_film(size, 1000 + number)
    timemap = TimeMap.constant(size, FILM_SECONDS)
    name = f"film-{number}.mp4"
    return make_torrent(film, name=name, trackers=trackers, timemap=timemap), film


def id_of(torrent):
    return parse_metainfo(torrent).info_hash.hex()


class Daemon:
    """One state folder, and the daemons that use it one after the other."""

    def __init__(self, processes, state: Path, listen: str = "127.0.0.1") -> None:
        self.state = state
        self.child = None
        self.starts = 0
        self._processes = processes
        self._listen = listen
        self._http = None

    async def spawn(self, *options):
        """Start the program, without waiting for it."""
        self.starts += 1
        words = ("--state", str(self.state), "--port", "0", "--listen", self._listen, "--json")
        self.child = await self._processes.start(
            f"daemon-{self.starts}", [program("toast"), "daemon", *words, *options]
        )
        return self.child

    async def start(self, *options):
        """Start it, and wait until it answers; returns what it said of itself."""
        await self.spawn(*options)
        return await self.wait_ready()

    async def wait_ready(self):
        facts = await self.child.wait_event("listening", timeout_seconds=READY_SECONDS)
        await self.close_client()
        token = (self.state / "token").read_text().strip()
        self._http = aiohttp.ClientSession(
            facts["url"], headers={"Authorization": f"Bearer {token}"}
        )
        return facts

    async def kill(self):
        self.child.signal(signal.SIGKILL)
        await self.child.wait_end()

    async def stop(self):
        return await self.child.stop(grace_seconds=20.0)

    async def close_client(self):
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def ask(self, method, path, body=None):
        """(status, JSON) of one request to the API."""
        kind = {"data": body} if isinstance(body, bytes) else {"json": body} if body else {}
        headers = {"Content-Type": "application/x-bittorrent"} if isinstance(body, bytes) else {}
        async with self._http.request(method, f"/api/v1{path}", headers=headers, **kind) as answer:
            return answer.status, await answer.json() if answer.content_length else None

    async def films(self):
        _, answer = await self.ask("GET", "/films")
        return {film["id"]: film for film in answer["films"]}

    async def wait_films(self, condition, seconds=30.0):
        """Wait until all films are as wished."""
        async with asyncio.timeout(seconds):
            while not condition(films := await self.films()):  # noqa: ASYNC110 - another program's
                await asyncio.sleep(0.2)
        return films
