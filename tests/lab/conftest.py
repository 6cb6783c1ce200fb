"""A small house of real programs: tracker, VoD server, viewers, each on an address of its own."""

import asyncio
import hashlib
import json
import os
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import bencode2
import pytest

from experiments.film import FilmSpec, make_film
from experiments.processes import Child, Processes, program

FILM_SECONDS = 15.0
READY_SECONDS = 20.0


@pytest.fixture(scope="session")
def film(tmp_path_factory) -> Path:
    """A real MP4 of 15 s at 1 Mb/s: some thirty pieces. Tests read it and never write to it."""
    spec = FilmSpec(duration_seconds=FILM_SECONDS, bit_rate=125_000.0, width=320, height=180)
    path = make_film(tmp_path_factory.mktemp("film") / "film.mp4", spec)
    path.chmod(0o444)
    return path


@dataclass
class Watching:
    """One `toast watch`, and the last that it told."""

    folder: Path
    child: Child | None = None
    progress: dict = field(default_factory=dict)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def on_event(self, event):
        if event["event"] == "progress":
            self.progress = event
            self.told.set()

    async def wait_until(self, condition, what, seconds=20.0):
        """Wait until a progress event is as wished, and return it."""
        try:
            async with asyncio.timeout(seconds):
                while not (self.progress and condition(self.progress)):
                    assert self.child.returncode is None, self.child.last_words
                    self.told.clear()
                    await self.told.wait()
        except TimeoutError:
            pytest.fail(f"waited in vain until {what}: {self.progress or self.child.last_words}")
        return self.progress

    async def wait_position(self, position):
        """Wait until the playhead has come so far, in seconds of the film."""
        return await self.wait_until(
            lambda progress: progress["position_seconds"] >= position, f"it plays {position:g} s"
        )

    async def report(self):
        """Wait for its end, and return its report."""
        await self.child.wait_success()
        return self.child.event("report")


class House:
    """Programs that share one film, all ended when the test ends."""

    def __init__(self, processes, film, folder):
        self.film = film
        self.film_bytes = film.stat().st_size
        self.sha256 = hashlib.sha256(film.read_bytes()).hexdigest()
        self.rate = self.film_bytes / FILM_SECONDS
        self.torrent = folder / "film.torrent"
        self.server = None
        self.url = None
        self._processes = processes
        self._folder = folder
        self._announce = None
        self._tracker_url = None
        self._started = 0
        self._net = 1 + os.getpid() % 250

    async def open(self, *, seed=False):
        """Tracker, store and VoD server; the film's .torrent is kept."""
        tracker = await self._start("tracker", "toast-tracker", "serve", "--port", "0", "--json")
        disks = [word for n in range(3) for word in ("--disk", str(self._folder / f"disk-{n}"))]
        await self._run("vodserver", "init", *self._store, *disks)
        await self._run("vodserver", "add", *self._store, str(self.film))
        ready = await tracker.wait_event("listening", timeout_seconds=READY_SECONDS)
        self._announce = ready["announce_url"]
        await self.start_server(seed=seed)

        self._tracker_url = ready["url"]
        self.torrent.write_bytes(await get(f"{self.url}/titles/film/torrent"))

    async def start_server(self, *, seed=False):
        """Start the VoD server, on the port that it had before if it had one."""
        port = "0" if self.url is None else self.url.rpartition(":")[2]
        how = ("--seed", "--seed-host", self._address(99)) if seed else ("--no-seed",)
        words = (*self._store, "--port", port, "--tracker", self._announce, *how, "--json")
        self.server = await self._start("vodserver", "vodserver", "serve", *words)
        ready = await self.server.wait_event("listening", timeout_seconds=READY_SECONDS)
        self.url = ready["url"]

    async def watch(self, name, *options, folder=None):
        """Start a viewer; with the folder of another one, it finds that one's film."""
        watching = Watching(folder or self._folder / name)
        words = (str(self.torrent), "--folder", str(watching.folder), "--json")
        listen = ("--listen", self._address(self._started))
        watching.child = await self._start(
            name, "toast", "watch", *words, *listen, *options, on_event=watching.on_event
        )
        return watching

    async def watch_complete(self, name, *options):
        """Start a viewer that has the whole film already, and wait until it is there to share."""
        folder = self._folder / name
        folder.mkdir()
        (folder / self.film.name).write_bytes(self.film.read_bytes())
        watching = await self.watch(name, "--behaviour", "seeding", *options, folder=folder)
        await watching.wait_until(
            lambda progress: progress["pieces_have"] == progress["pieces"], "it has the film"
        )
        async with asyncio.timeout(READY_SECONDS):
            while json.loads(await get(f"{self._tracker_url}/status"))["peers"] == 0:  # noqa: ASYNC110 - it is another program's state
                await asyncio.sleep(0.05)
        return watching

    @property
    def pieces(self):
        """How many the film has."""
        info = bencode2.bdecode(self.torrent.read_bytes())[b"info"]
        return len(info[b"pieces"]) // 20

    def intact_bytes(self, folder):
        """Bytes of the pieces that the film's file in a folder holds intact, by our own hashing."""
        info = bencode2.bdecode(self.torrent.read_bytes())[b"info"]
        size, hashes = info[b"piece length"], info[b"pieces"]
        data = (folder / self.film.name).read_bytes()
        pieces = [data[at : at + size] for at in range(0, self.film_bytes, size)]
        return sum(
            len(piece)
            for number, piece in enumerate(pieces)
            if hashlib.sha1(piece).digest() == hashes[20 * number : 20 * number + 20]
        )

    def assert_whole(self, watching, report):
        """A viewer's film is the source's, by its own word and by the file on its disk."""
        assert report["complete"] is True
        assert report["sha256"] == self.sha256
        copy = (watching.folder / self.film.name).read_bytes()
        assert hashlib.sha256(copy).hexdigest() == self.sha256

    @property
    def _store(self):
        return ("--store", str(self._folder / "store"))

    def _address(self, number):
        return f"127.{self._net}.77.{number + 1}"

    async def _start(self, name, room, *words, on_event=None):
        self._started += 1
        log = f"{self._started}-{name}"
        return await self._processes.start(log, [program(room), *words], on_event=on_event)

    async def _run(self, room, *words):
        await (await self._start(words[0], room, *words)).wait_success()


async def get(url):
    """What an URL of ours answers."""

    def fetch():
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()

    return await asyncio.to_thread(fetch)


@pytest.fixture
async def house(film, tmp_path) -> AsyncIterator[House]:
    async with Processes(tmp_path / "logs") as processes:
        yield House(processes, film, tmp_path)
