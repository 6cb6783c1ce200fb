"""Server, tracker, peers and a viewer's machine, each a host of an emulated network."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

from experiments.errors import LabError
from experiments.processes import Processes, program
from experiments.start.films import LongFilm
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology

__all__ = ["HOME_RATE", "ONE_WAY_SECONDS", "StartHouse"]

HOME_RATE: Final = 100e6 / 8
ONE_WAY_SECONDS: Final = 0.025
"""Each way: 50 ms there and back, between any two hosts."""

_READY_SECONDS: Final = 120.0
_RUN_SECONDS: Final = 120.0
_LINE_BYTES: Final = 1 << 20
_HOUSEHOLD: Final = ("-m", "experiments.start.household")
_GET: Final = """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as answer:
    sys.stdout.buffer.write(answer.read())
"""
_PORTS: Final = {"http": 8080, "tracker": 6969}


def start_topology(peers: int) -> Topology:
    """A server in a data centre, and homes with 100 Mb/s both ways; 50 ms from each to each."""
    home = LatencyClass("home", ONE_WAY_SECONDS, rate=HOME_RATE, download=HOME_RATE)
    centre = LatencyClass("centre", ONE_WAY_SECONDS)
    hosts = [Host("server", "centre"), Host("viewer", "home")]
    hosts += [Host(f"peer-{number}", "home") for number in range(1, peers + 1)]
    return Topology("start", (home, centre), tuple(hosts))


class StartHouse:
    """A house that serves some films; use `StartHouse.open`.

    Attributes:
        network: where it stands.
        films: by kind.
    """

    def __init__(
        self, network: Network, processes: Processes, folder: Path, films: dict[str, LongFilm]
    ) -> None:
        self.network = network
        self.films = films
        self._processes = processes
        self._folder = folder
        self._household: asyncio.subprocess.Process | None = None
        self._server_url = ""
        self._peers = 0

    @classmethod
    @asynccontextmanager
    async def open(
        cls, folder: Path, films: list[LongFilm], *, peers: int, seed: int = 1
    ) -> AsyncIterator[Self]:
        """A house on a network of its own, with the films in its store.

        Args:
            folder: for the store, logs and viewings; what is in the store already stays there.
            films: what it serves.
            peers: hosts for peers.
            seed: of the network's chance.

        Raises:
            LabError: a program does not do what it should.
            NetemError: there can be no such network here.
        """
        network = Network(start_topology(peers), seed=seed)
        async with network, Processes(folder / "logs") as processes:
            house = cls(network, processes, folder, {film.kind: film for film in films})
            try:
                await house._start(films)
                yield house
            finally:
                await house._close()

    def url(self, film: LongFilm) -> str:
        """Where the server has a film."""
        return f"{self._server_url}/titles/{film.path.stem}/content"

    async def run(self, kind: str, film: LongFilm, **request: Any) -> dict[str, Any]:
        """Have the viewer's machine do something, and return what it says of it.

        Raises:
            LabError: it failed.
        """
        household = self._household
        assert household is not None
        assert household.stdin is not None
        assert household.stdout is not None
        words = {
            "kind": kind,
            "url": self.url(film),
            "torrent": str(self._torrent(film)),
            **request,
        }
        household.stdin.write(json.dumps(words).encode() + b"\n")
        try:
            async with asyncio.timeout(_RUN_SECONDS):
                line = await household.stdout.readline()
        except TimeoutError as error:
            raise LabError(f"the {kind} viewing of {film.path.name} does not end") from error
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the household died"}
        error_text = answer.get("error") or answer.get("reading", {}).get("error")
        if error_text:
            raise LabError(f"the {kind} viewing of {film.path.name} fails: {error_text}")
        return answer

    @asynccontextmanager
    async def peers(self, film: LongFilm, count: int) -> AsyncIterator[None]:
        """So many peers that have all of a film, each in a host of its own."""
        children = []
        for number in range(1, count + 1):
            folder = self._folder / f"peer-{number}"
            folder.mkdir(exist_ok=True)
            link = folder / film.path.name
            if not link.exists():
                os.link(film.path, link)
            host = f"peer-{number}"
            words = ["watch", str(self._torrent(film)), "--folder", str(folder), "--json"]
            words += ["--behaviour", "seeding", "--listen", self.network.address(host)]
            complete = asyncio.Event()

            def look(event: dict[str, Any], complete: asyncio.Event = complete) -> None:
                if event["event"] == "progress" and event["pieces_have"] == event["pieces"]:
                    complete.set()

            command = self.network.command(host, [program("toast"), *words])
            self._peers += 1
            name = f"peer-{self._peers}"
            children.append(await self._processes.start(name, command, on_event=look))
            # One after the other: each hashes the whole film first.
            async with asyncio.timeout(_READY_SECONDS):
                await complete.wait()
        try:
            if count:
                await self._until_announced(count)
            yield
        finally:
            await asyncio.gather(*(child.stop() for child in children))

    async def _start(self, films: list[LongFilm]) -> None:
        server = self.network.address("server")
        store: tuple[str, ...] = ("--store", str(self._folder / "store"))
        if not (self._folder / "store").exists():
            disk = str(self._folder / "disk")
            init = ("init", *store, "--disk", disk, "--allocation", "naive")
            await self._processes.run("init", [program("vodserver"), *init])
        for film in films:
            if not self._torrent(film).exists():
                add = ("add", *store, str(film.path))
                await self._processes.run("add", [program("vodserver"), *add])
        tracker = ("serve", "--host", server, "--port", str(_PORTS["tracker"]), "--json")
        await self._listen("tracker", "toast-tracker", *tracker)
        announce = f"http://{server}:{_PORTS['tracker']}/announce"
        self._server_url = f"http://{server}:{_PORTS['http']}"
        words = (*store, "--host", server, "--port", str(_PORTS["http"]), "--no-seed")
        words = (*words, "--tracker", announce, "--json")
        await self._listen("vodserver", "vodserver", "serve", *words)
        for film in films:
            url = f"{self._server_url}/titles/{film.path.stem}/torrent"
            self._torrent(film).write_bytes(await self._get(url))
        self._household = await self.network.popen(
            "viewer",
            [
                *(sys.executable, *_HOUSEHOLD),
                *(self.network.address("viewer"), str(self._folder)),
            ],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
        )
        assert self._household.stdout is not None
        async with asyncio.timeout(_READY_SECONDS):
            if not await self._household.stdout.readline():
                raise LabError("the viewer's machine does not start: see above")

    async def _listen(self, name: str, room: str, *words: str) -> None:
        command = self.network.command("server", [program(room), *words])
        child = await self._processes.start(name, command)
        await child.wait_event("listening", timeout_seconds=_READY_SECONDS)

    async def _get(self, url: str) -> bytes:
        """What a URL answers to somebody in the server's own host."""
        done = await self.network.run("server", [sys.executable, "-c", _GET, url])
        if done.exit_code:
            last = (done.errors.decode(errors="replace").strip().splitlines() or [""])[-1]
            raise LabError(f"{url} cannot be had: {last}")
        return done.output

    async def _until_announced(self, count: int) -> None:
        server = self.network.address("server")
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                status = await self._get(f"http://{server}:{_PORTS['tracker']}/status")
                if json.loads(status)["peers"] >= count:
                    return
                await asyncio.sleep(0.2)

    async def _close(self) -> None:
        if self._household is not None:
            assert self._household.stdin is not None
            self._household.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    await self._household.wait()

    def _torrent(self, film: LongFilm) -> Path:
        return self._folder / f"{film.path.stem}.torrent"
