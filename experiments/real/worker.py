"""A process that hosts many viewers on one event loop: `python -m experiments.real.worker`.

It is told what to do in lines of JSON on its standard input, and tells what becomes of it on its
standard output. When its input ends, whoever started it is gone, and so is it.

    in:   {"do": "host", ...}           a `Job`
          {"do": "stop"}                every viewing ends
    out:  {"event": "ready"}            before the job
          {"event": "progress", ...}    once a second
          {"event": "pause", ...}       when it had to stand still
          {"event": "row", ...}         a `ViewerRow`, when a viewer has left
    A viewer that cannot go on ends the process, with a line on its standard error.
"""

import asyncio
import contextlib
import json
import resource
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TextIO

import numpy as np

from experiments.errors import LabError
from experiments.real.client import ClientContext, LabClient, create_client
from experiments.real.wiring import session_settings
from experiments.swarms.scenario import Scenario, SwarmViewer
from experiments.swarms.text import from_plain
from toast.common.errors import ToastError
from toast.viewer import viewer_http

__all__ = ["Job", "Worker"]

_PROGRESS_SECONDS = 1.0
_MOSTLY = 0.95
_TICK_SECONDS = 0.1
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a worker hosts."""

    scenario: dict[str, Any]
    """As plain data."""
    viewers: list[int]
    """Their numbers."""
    hosts: list[str]
    """An address for each."""
    source: str
    """URL of the film's title."""
    sha256: str
    """Of the film."""
    film: str
    """Where it is."""
    folder: str
    """Where its viewers keep theirs."""
    zero: float
    """The run's beginning, by the system's monotonic clock."""

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """As it was told."""
        return cls(**{name: value for name, value in message.items() if name != "do"})


class Worker:
    """Hosts the viewers of a job.

    Args:
        job: what to do.
        out: where to tell of it.
    """

    def __init__(self, job: Job, out: TextIO) -> None:
        self._job = job
        self._out = out
        self._scenario: Scenario = from_plain(job.scenario)
        crowd = self._scenario.crowd()
        self._viewers = [crowd[number] for number in job.viewers]
        self._present: dict[int, LabClient] = {}
        self._played: set[int] = set()
        self._arrived = 0
        self._received = [0, 0]
        loop = asyncio.get_running_loop()
        self._began_at = loop.time() + job.zero - time.monotonic()
        self._stopping = False
        self._late_seconds: list[float] = []

    async def run(self) -> None:
        """Host everyone until the last has left.

        Raises:
            ToastError: a viewer cannot watch.
        """
        telling = asyncio.create_task(self._keep_telling())
        pauses = asyncio.create_task(self._tell_pauses())
        tasks = [
            asyncio.create_task(self._host(viewer, host))
            for viewer, host in zip(self._viewers, self._job.hosts, strict=True)
        ]
        try:
            for task in asyncio.as_completed(tasks):
                await task
        finally:
            for task in (telling, pauses, *tasks):
                task.cancel()
            await asyncio.gather(telling, pauses, *tasks, return_exceptions=True)
        self._tell_progress()

    def stop(self) -> None:
        """End every viewing that goes on."""
        self._stopping = True
        for client in self._present.values():
            client.stop()

    async def _host(self, viewer: SwarmViewer, host: str) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._began_at + viewer.arrives_seconds - loop.time())
        folder = Path(self._job.folder) / f"viewer-{viewer.number}"
        settings = session_settings(self._scenario, viewer.link, host)
        try:
            async with viewer_http(settings) as http:
                client = create_client(
                    ClientContext(
                        scenario=self._scenario,
                        viewer=viewer,
                        source=self._job.source,
                        listen_host=host,
                        folder=folder,
                        http=http,
                        began_at=self._began_at,
                        rng=np.random.default_rng([self._scenario.random_seed, viewer.number]),
                        sha256=self._job.sha256,
                        film=Path(self._job.film),
                    )
                )
                self._arrived += 1
                self._present[viewer.number] = client
                if viewer.seek is not None:
                    after, to = viewer.seek
                    sought_at = self._began_at + viewer.arrives_seconds + after
                    loop.call_at(sought_at, client.seek, to)
                if viewer.leaves_seconds is not None:
                    gone_at = viewer.arrives_seconds + viewer.leaves_seconds
                    loop.call_at(self._began_at + gone_at, client.stop)
                if self._stopping:
                    client.stop()
                await client.run()
        except ToastError as error:
            raise LabError(f"viewer {viewer.number}: {error}") from error
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        del self._present[viewer.number]
        self._note(viewer.number, client)
        self._tell({"event": "row", **asdict(client.row())})

    def _note(self, number: int, client: LabClient) -> None:
        """Who leaves is remembered, and has seen what it wanted to see."""
        self._played.add(number)
        for nth, count in enumerate(client.received):
            self._received[nth] += count

    async def _keep_telling(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _PROGRESS_SECONDS
            await asyncio.sleep(_PROGRESS_SECONDS)
            self._late_seconds.append(loop.time() - due)
            self._tell_progress()

    async def _tell_pauses(self) -> None:
        """A stall in one of them is the machine's doing."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _TICK_SECONDS
            await asyncio.sleep(_TICK_SECONDS)
            lasted = loop.time() - due
            if lasted > _PAUSE_SECONDS:
                at = due - self._began_at
                self._tell({"event": "pause", "seconds": at, "lasted_seconds": lasted})

    def _tell_progress(self) -> None:
        present = self._present.values()
        played = sum(client.has_played for client in present)
        received = [client.received for client in present]
        self._tell(
            {
                "event": "progress",
                "arrived": self._arrived,
                "watching": len(self._present) - played,
                "played": len(self._played) + played,
                "from_peers": self._received[0] + sum(counts[0] for counts in received),
                "received": self._received[1] + sum(counts[1] for counts in received),
                "late_seconds": float(np.quantile(self._late_seconds or [0.0], _MOSTLY)),
            }
        )

    def _tell(self, event: Mapping[str, Any]) -> None:
        print(json.dumps(event), file=self._out, flush=True)


async def _listen() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _obey(worker: Worker, ear: asyncio.StreamReader) -> None:
    """Do what is told, until nobody is left to tell anything."""
    while line := await ear.readline():
        if json.loads(line).get("do") == "stop":
            worker.stop()


async def _main(out: TextIO) -> int:
    ear = await _listen()
    print(json.dumps({"event": "ready"}), file=out, flush=True)
    line = await ear.readline()
    if not line:
        return 1
    worker = Worker(Job.from_message(json.loads(line)), out)
    running = asyncio.create_task(worker.run())
    obeying = asyncio.create_task(_obey(worker, ear))
    try:
        await asyncio.wait({running, obeying}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            return 1
        await running
    except ToastError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        for task in (running, obeying):
            task.cancel()
        await asyncio.gather(running, obeying, return_exceptions=True)
    return 0


def _allow_many_files() -> None:
    """Each viewer has a score of descriptors."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> int:
    """Host what is told on standard input; returns the exit code."""
    _allow_many_files()
    with asyncio.Runner() as runner:  # the loop that `toast watch` runs on
        return runner.run(_main(sys.stdout))


if __name__ == "__main__":
    sys.exit(main())
