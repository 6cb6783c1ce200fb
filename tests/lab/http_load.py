"""Viewers that never stop asking, and check every byte: the load under which disks are lost."""

import asyncio
import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import av
import numpy as np

from experiments.film import FilmSpec, make_film
from experiments.processes import program

READY_SECONDS = 20.0
_RANGE_BYTES = 200_000
_TURN_SECONDS = 10.25
"""Ten seconds and a little: no picture or sound of one turn comes after the next has begun."""


def make_long_film(path: Path, *, seconds: float, rate: float, seed: int = 1) -> Path:
    """A real film that is long and cheap: some seconds of it, again and again."""
    spec = FilmSpec(duration_seconds=10.0, bit_rate=rate, width=160, height=90, fps=5, seed=seed)
    short = make_film(path.with_name(f"short-{path.name}"), spec)
    with av.open(str(path), "w") as target:
        streams = []
        for turn in range(round(seconds / _TURN_SECONDS)):
            with av.open(str(short)) as source:
                streams = streams or [
                    target.add_stream_from_template(stream) for stream in source.streams
                ]
                for packet in source.demux():
                    if packet.dts is not None:
                        shift = round(turn * _TURN_SECONDS / packet.time_base)
                        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                        packet.stream = streams[packet.stream.index]
                        target.mux(packet)
    short.unlink()
    return path


@dataclass
class Load:
    """What a crowd of viewers met.

    Attributes:
        requests: answers that were read to their end.
        failed_requests: those that were not as they should be, other than in their bytes.
        wrong_bytes: bytes that are not the film's.
        read_bytes: all that was read.
        faults: what failed, of the first few.
    """

    requests: int = 0
    failed_requests: int = 0
    wrong_bytes: int = 0
    read_bytes: int = 0
    faults: tuple[str, ...] = ()

    def figures(self, prefix):
        names = ("requests", "failed_requests", "wrong_bytes", "read_bytes")
        return {f"{prefix}_{name}": getattr(self, name) for name in names}


class Crowd:
    """Clients that read ranges and whole films from a server until they are stopped.

    Args:
        url: of the server.
        films: path of each film by title id.
        clients: how many; every fourth reads whole films, the others ranges.
    """

    def __init__(self, url, films, clients):
        self.load = Load()
        self._url = url
        self._films = {title: film.read_bytes() for title, film in films.items()}
        self._tasks = []
        self._clients = clients
        self._moved = asyncio.Event()
        self._going = asyncio.Event()
        self._going.set()
        self._under_way = 0

    async def __aenter__(self):
        connector = aiohttp.TCPConnector(limit=0)
        self._http = aiohttp.ClientSession(self._url, connector=connector)
        for number in range(self._clients):
            rng = np.random.default_rng(number)
            work = self._read_films if number % 4 == 3 else self._read_ranges
            self._tasks.append(asyncio.create_task(work(rng)))
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.close()

    async def wait_requests(self, more, seconds=60.0):
        """Wait until so many more answers were read."""
        until = self.load.requests + self.load.failed_requests + more
        async with asyncio.timeout(seconds):
            while self.load.requests + self.load.failed_requests < until:
                self._moved.clear()
                await self._moved.wait()

    @contextlib.asynccontextmanager
    async def paused(self, seconds=30.0):
        """For so long no request is under way."""
        self._going.clear()
        async with asyncio.timeout(seconds):
            while self._under_way:
                self._moved.clear()
                await self._moved.wait()
        yield
        self._going.set()

    async def _read_ranges(self, rng):
        while True:
            title, film = self._choose(rng)
            begin = int(rng.integers(0, len(film)))
            end = min(begin + int(rng.integers(1, _RANGE_BYTES)), len(film))
            await self._read(title, film, begin, end)

    async def _read_films(self, rng):
        while True:
            title, film = self._choose(rng)
            await self._read(title, film, 0, len(film))

    def _choose(self, rng):
        title = sorted(self._films)[int(rng.integers(0, len(self._films)))]
        return title, self._films[title]

    async def _read(self, title, film, begin, end):
        await self._going.wait()
        self._under_way += 1
        try:
            fault = await self._ask(title, film, begin, end)
        finally:
            self._under_way -= 1
            self._moved.set()
        if fault:
            await asyncio.sleep(0.1)

    async def _ask(self, title, film, begin, end):
        headers = {"Range": f"bytes={begin}-{end - 1}"}
        data = bytearray()
        fault = ""
        try:
            async with self._http.get(f"/titles/{title}/content", headers=headers) as answer:
                if answer.status != 206:
                    fault = f"status {answer.status}"
                else:
                    async for part in answer.content.iter_chunked(256 * 1024):
                        self._compare(film, begin + len(data), part)
                        data += part
            if not fault and len(data) != end - begin:
                fault = f"{len(data)} of {end - begin} bytes"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            fault = f"{type(error).__name__}: {error}"
        self.load.read_bytes += len(data)
        if fault:
            self.load.failed_requests += 1
            self.load.faults = (*self.load.faults, f"{title} {begin}-{end}: {fault}")[:5]
        else:
            self.load.requests += 1
        return fault

    def _compare(self, film, at, part):
        wanted = film[at : at + len(part)]
        if part != wanted:
            pair = (np.frombuffer(each, np.uint8) for each in (part[: len(wanted)], wanted))
            differing = np.count_nonzero(np.not_equal(*pair))
            self.load.wrong_bytes += int(differing) + len(part) - len(wanted)


class Server:
    """A store on four disks, and `vodserver` over it as operators run it."""

    def __init__(self, processes, folder):
        self.folder = folder
        self.store = folder / "store"
        self.disks = [folder / f"disk{number}" for number in range(4)]
        self._processes = processes
        self._count = 0
        self.child = None
        self.url = None
        self.seed_port = None

    async def start(self, *options):
        """Serve."""
        self.child = await self._start("serve", "--port", "0", *options, "--json")
        ready = await self.child.wait_event("listening", timeout_seconds=READY_SECONDS)
        self.url, self.seed_port = ready["url"], ready["seed_port"]

    async def stop(self):
        assert await self.child.stop() == 0

    async def run(self, *words, on_event=None):
        """Run a command to its end; returns the child."""
        child = await self._start(*words, on_event=on_event)
        await child.wait_success()
        return child

    async def _start(self, *words, on_event=None):
        self._count += 1
        command = [program("vodserver"), *words, "--store", str(self.store)]
        return await self._processes.start(f"{self._count}-{words[0]}", command, on_event=on_event)


def digests(folder):
    """SHA-256 of every extent's file under a disk, by folder and number."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "extents").glob("*/*"))
    }
