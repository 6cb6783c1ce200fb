"""The demonstration: a film, a server, a tracker, and viewers as separate programs.

Everything runs through the same command lines that a person uses. Each viewer has a loopback
address of its own, because libtorrent bans by address and a tracker tells viewers apart by it.
"""

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from experiments.accounting import RunFacts, ViewerReport, summarize
from experiments.bound import Behaviour
from experiments.counting import get_json, operator_bytes, url_of
from experiments.decoder import DecodeResult
from experiments.errors import LabError, ScenarioError
from experiments.processes import Child, Event, Processes, program
from toast.media import MediaInfo, probe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

__all__ = ["Demo", "DemoSettings", "ViewerState"]

_DISKS = 4
_READY_SECONDS = 20.0
_ADD_SECONDS = 120.0
_REPORT_SECONDS = 30.0  # a viewer hashes its film before it says what it came to


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """What the demonstration shows. Rates in bytes per second, times in seconds."""

    viewers: int = 8
    """How many watch."""
    spacing_seconds: float = 7.5
    """One arrives every so often."""
    upload_rate: float | None = None
    """Upload cap of each viewer; None: the film's bit rate."""
    picker: str = "hybrid"
    """The viewers' piece picker."""
    behaviour: Behaviour = Behaviour.STREAMING
    """When viewers leave."""
    seed: bool = True
    """Whether the operator seeds besides serving; its cap is the film's bit rate."""
    folder: Path = field(default_factory=lambda: Path("run/demo"))
    """Where films, stores and logs of a run are kept, in a new folder for each run."""
    keep: bool = False
    """Keep that folder after the run."""
    patience_seconds: float = 45.0
    """How much longer than arrivals and film together a run may take before it counts as stuck."""

    def __post_init__(self) -> None:
        if not 1 <= self.viewers <= 200:
            raise ScenarioError("the demonstration takes from 1 to 200 viewers")
        if self.spacing_seconds < 0:
            raise ScenarioError("viewers cannot arrive before the one before them")


@dataclass(slots=True)
class ViewerState:
    """What is known of one viewer while the run goes on."""

    name: str
    arrives_seconds: float
    """After the start of the run."""
    gateway: bool = False
    """Whether a decoder reads along."""
    started: bool = False
    """Whether its program runs or has run."""
    progress: Event = field(default_factory=dict)
    """Its last progress event."""
    report: ViewerReport | None = None
    """What it said at its end."""

    @property
    def position_seconds(self) -> float:
        """Film time of its playhead."""
        return float(self.progress.get("position_seconds") or 0.0)


class Demo:
    """One run of the demonstration.

    Args:
        film: the film to show.
        settings: how.
        say: is told what happens, in one line each.
    """

    def __init__(self, film: Path, settings: DemoSettings, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.film = film
        self.info: MediaInfo = probe(film)
        self.film_bytes = film.stat().st_size
        self.bit_rate = self.film_bytes / self.info.duration
        self.upload_rate = settings.upload_rate or self.bit_rate
        watched = max(0, settings.viewers - 2)
        self.viewers = [
            ViewerState(f"viewer-{n + 1}", n * settings.spacing_seconds, gateway=n == watched)
            for n in range(settings.viewers)
        ]
        self.began_at: float | None = None
        self._say = say
        self._decode: DecodeResult | None = None
        self._everyone_played = asyncio.Event()
        # Two runs on one machine must not meet: each takes addresses by its process number.
        self._net = 1 + os.getpid() % 250

    async def run(self) -> dict[str, Any]:
        """Carry it out; returns the figures of docs/measures.md.

        Raises:
            LabError: a program failed, or the run got stuck; all programs have been ended.
        """
        settings = self.settings
        with _run_folder(settings) as folder:
            with self.film.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            async with Processes(folder / "logs") as processes, aiohttp.ClientSession() as http:
                tracker, server = await self._start_operator(processes, folder)
                operator = {child: child.event("listening") for child in (tracker, server)}
                title = await get_json(http, f"{url_of(operator[server])}/titles")
                source = f"{url_of(operator[server])}/titles/{title[0]['id']}"
                self._say(
                    f"{settings.viewers} viewers come, one every {settings.spacing_seconds:g} s"
                )
                await self._watch_all(processes, folder, source, (tracker, server))
                counted = await operator_bytes(
                    http, url_of(operator[tracker]), url_of(operator[server])
                )
        reports = [viewer.report for viewer in self.viewers if viewer.report is not None]
        return summarize(
            RunFacts(
                film_bytes=self.film_bytes,
                duration_seconds=self.info.duration,
                film_sha256=digest,
                upload_cap=self.upload_rate,
                behaviour=settings.behaviour,
                reports=reports,
                operator=counted,
                decode=self._decode,
            )
        )

    async def _start_operator(self, processes: Processes, folder: Path) -> tuple[Child, Child]:
        """Tracker and VoD server, with the film in a store on four directories."""
        store = ("--store", str(folder / "store"))
        server = program("vodserver")
        tracker = await processes.start(
            "tracker", [program("toast-tracker"), "serve", "--port", "0", "--json"]
        )
        disks = [arg for n in range(_DISKS) for arg in ("--disk", str(folder / f"disk-{n + 1}"))]
        await processes.run("init", [server, "init", *store, *disks])
        self._say("the film goes into the store")
        async with asyncio.timeout(_ADD_SECONDS):
            await processes.run("add", [server, "add", *store, str(self.film), "--json"])
        ready = await tracker.wait_event("listening", timeout_seconds=_READY_SECONDS)
        command = [server, "serve", *store, "--port", "0", "--json"]
        command += ["--tracker", str(ready.get("announce_url") or f"{url_of(ready)}/announce")]
        if self.settings.seed:
            command += ["--seed", "--seed-host", self._address(0)]
            command += ["--seed-upload", _rate(self.bit_rate)]
        else:
            command += ["--no-seed"]
        vodserver = await processes.start("vodserver", command)
        await vodserver.wait_event("listening", timeout_seconds=_READY_SECONDS)
        return tracker, vodserver

    async def _watch_all(
        self, processes: Processes, folder: Path, source: str, operator: tuple[Child, ...]
    ) -> None:
        """Let every viewer come, watch and leave; fails as soon as anything does."""
        loop = asyncio.get_running_loop()
        self.began_at = loop.time()
        longest = self.viewers[-1].arrives_seconds + self.info.duration
        longest += self.settings.patience_seconds
        tasks: list[Awaitable[None]] = [
            self._watch(processes, folder, viewer, source) for viewer in self.viewers
        ]
        guards: list[Awaitable[None]] = [_must_not_end(child) for child in operator]
        try:
            async with asyncio.timeout(longest):
                await _all_or_first_failure(tasks, guards)
        except TimeoutError as error:
            late = [viewer.name for viewer in self.viewers if viewer.report is None]
            raise LabError(f"still watching after {longest:.0f} s: {', '.join(late)}") from error

    async def _watch(
        self,
        processes: Processes,
        folder: Path,
        viewer: ViewerState,
        source: str,
    ) -> None:
        """One viewer from its arrival to its report, with a decoder beside it if it has one."""
        settings = self.settings
        number = self.viewers.index(viewer)
        await asyncio.sleep(viewer.arrives_seconds)
        command = [program("toast"), "watch", source, "--json"]
        command += ["--folder", str(folder / viewer.name), "--upload", _rate(self.upload_rate)]
        command += ["--picker", settings.picker, "--behaviour", str(settings.behaviour)]
        command += ["--listen", self._address(number + 1)]
        if viewer.gateway:
            command.append("--gateway")

        def on_event(event: Event) -> None:
            if event["event"] == "progress":
                self._note_progress(viewer, event)

        child = await processes.start(viewer.name, command, on_event=on_event)
        viewer.started = True
        parts: list[Awaitable[None]] = [self._let_it_end(child, viewer)]
        if viewer.gateway:
            parts.append(self._decode_along(processes, child))
        await _all_or_first_failure(parts, [])

    async def _let_it_end(self, child: Child, viewer: ViewerState) -> None:
        # A seeding viewer stays until the run ends, which is when the last one has seen the film.
        if self.settings.behaviour is Behaviour.SEEDING:
            ended = asyncio.ensure_future(child.wait_end())
            played = asyncio.ensure_future(self._everyone_played.wait())
            await asyncio.wait({ended, played}, return_when=asyncio.FIRST_COMPLETED)
            played.cancel()
            if not ended.done():
                await child.stop(grace_seconds=_REPORT_SECONDS)
        await child.wait_success()
        event = child.event("report")
        if event is None:
            raise LabError(f"{viewer.name} left without a report: {child.last_words}")
        viewer.report = ViewerReport.from_event(event, viewer=viewer.name)

    async def _decode_along(self, processes: Processes, child: Child) -> None:
        ready = await child.wait_event("gateway", timeout_seconds=_READY_SECONDS)
        command = [sys.executable, "-m", "experiments.cli", "decode", url_of(ready), "--json"]
        decoder = await processes.start("decoder", command)
        await decoder.wait_end()  # it fails on a damaged film, but then it has its result to tell
        event = decoder.event("decoded")
        if event is None:
            raise LabError(f"the decoder ended without a result: {decoder.last_words}")
        self._decode = DecodeResult(**{f.name: event[f.name] for f in fields(DecodeResult)})

    def _note_progress(self, viewer: ViewerState, event: Event) -> None:
        viewer.progress = event
        # The playhead rests at the end; the last event before that may be a moment short of it.
        end = self.info.duration - 0.1
        if all(v.report or v.position_seconds >= end for v in self.viewers):
            self._everyone_played.set()

    def _address(self, number: int) -> str:
        return f"127.{self._net}.{number // 200}.{number % 200 + 1}"


async def _all_or_first_failure(
    tasks: "list[Awaitable[None]]", guards: "list[Awaitable[None]]"
) -> None:
    """Wait for all tasks; whatever fails first, guards included, ends the rest and is raised."""
    running = [asyncio.ensure_future(task) for task in tasks]
    watching = [asyncio.ensure_future(guard) for guard in guards]
    everything = {*running, *watching}
    try:
        while not all(task.done() for task in running):
            pending = {task for task in everything if not task.done()}
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)


async def _must_not_end(child: Child) -> None:
    code = await child.wait_end()
    raise LabError(f"{child.name} ended during the run (exit code {code}): {child.last_words}")


def _rate(bytes_per_second: float) -> str:
    return f"{bytes_per_second:.3f}B/s"


@contextmanager
def _run_folder(settings: DemoSettings) -> "Iterator[Path]":
    try:
        settings.folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="demo-", dir=settings.folder)).absolute()
    except OSError as error:
        raise LabError(f"nothing can be written to {settings.folder}: {error.strerror}") from error
    try:
        yield folder
    finally:
        if not settings.keep:
            shutil.rmtree(folder, ignore_errors=True)
