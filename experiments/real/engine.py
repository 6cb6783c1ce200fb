"""The real engine: a scenario carried out by real viewers, in a few processes on one machine."""

import asyncio
import contextlib
import os
import resource
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiohttp

from experiments.accounting import OperatorBytes
from experiments.bound import Behaviour
from experiments.errors import LabError, ScenarioError
from experiments.processes import Child, Processes
from experiments.real.crew import Crew
from experiments.real.emulated import Emulation, Places, emulation_for, worker_command
from experiments.real.film import fitted
from experiments.real.house import LOGS, Net, Operator, run_folder
from experiments.real.memory import (
    MEMORY_FOLDER,
    free_bytes,
    held_bytes,
    in_memory,
    stored_bytes,
)
from experiments.real.sharing import is_right
from experiments.real.wiring import check, note_on, storage_bytes
from experiments.swarms.engine import Progress, Say
from experiments.swarms.result import LoadSample, RunFacts, RunResult, conclude
from experiments.swarms.scenario import Scenario
from experiments.swarms.text import describe
from toast.common.units import format_bytes

__all__ = ["RealEngine"]

_BEGIN_SECONDS: Final = 0.3
_SAMPLES: Final = 100
_LEAST_SAMPLE_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 60.0
_SHOWN_LATE: Final = 10
_LATE_SECONDS: Final = 0.1
_SHADOW_SECONDS: Final = 1.0


class RealEngine:
    """Carries scenarios out with real viewers.

    Args:
        folder: where films are kept during a run; memory if there is a file system in it.
        workers: processes that host viewers; one for each core if not given.
        emulation: the network to be on; if not given, one with the scenario's latencies, and the
            machine's own loopback if it has none.
        patience_seconds: how much longer than planned a run may take before it counts as stuck.
    """

    name = "real"

    def __init__(
        self,
        folder: Path | None = None,
        *,
        workers: int | None = None,
        emulation: Emulation | None = None,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        fallback = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else Path(tempfile.gettempdir())
        self._folder = folder or fallback
        self._workers = workers or len(os.sched_getaffinity(0))
        self._emulation = emulation
        self._patience_seconds = patience_seconds

    def run(self, scenario: Scenario, say: Say = lambda _: None) -> RunResult:
        """Carry a scenario out, from the first arrival to the end.

        Raises:
            ScenarioError: it cannot be done with real viewers on this machine.
            LabError: a program failed, or the run got stuck; everything has been ended.
        """
        check(scenario)
        emulation = emulation_for(scenario, self._emulation)
        scenario = fitted(scenario)
        used = _cpu_seconds()
        with run_folder(self._folder) as folder, Net() as net:
            _check_room(scenario, folder)
            run = _Run(scenario, folder, net, say)
            try:
                asyncio.run(run.carry_out(self._workers, self._patience_seconds, emulation))
            except asyncio.CancelledError:  # told to end: the same as Ctrl-C
                raise KeyboardInterrupt from None
        facts = run.facts(_cpu_seconds() - used)
        return conclude(scenario, facts, describe(scenario))


class _Run:
    """One run."""

    def __init__(self, scenario: Scenario, folder: Path, net: Net, say: Say) -> None:
        self._scenario = scenario
        self._folder = folder
        self._net = net
        self._say = say
        self._zero = 0.0
        self._wall_seconds = 0.0
        self._load: list[LoadSample] = []
        self._peak_memory = 0
        self._sent = OperatorBytes(http=0, seed=0, tracker=0)
        self._note_on_network: str | None = None

    async def carry_out(
        self, workers: int, patience_seconds: float, emulation: Emulation | None
    ) -> None:
        _end_on_sigterm()
        if emulation is None:
            await self._carry_out(self._net, [worker_command()] * workers, patience_seconds)
            return
        async with emulation.up(self._scenario) as places:
            self._note_on_network = places.note
            await self._carry_out(places, places.workers, patience_seconds)

    async def _carry_out(
        self, places: Net | Places, commands: Sequence[list[str]], patience_seconds: float
    ) -> None:
        scenario = self._scenario
        async with Processes(self._folder / LOGS) as processes, aiohttp.ClientSession() as http:
            operator = await Operator.start(scenario, processes, self._folder, places, http)
            self._crew = crew = Crew(scenario, commands)
            await crew.start(processes)
            self._zero = time.monotonic() + _BEGIN_SECONDS
            crew.begin(
                [places.viewer_host(number) for number in range(scenario.viewers)],
                {
                    "scenario": describe(scenario),
                    "source": operator.source,
                    "sha256": operator.film.sha256,
                    "film": str(operator.film.path),
                    "folder": str(self._folder),
                    "zero": self._zero,
                },
            )
            longest = scenario.end_seconds + patience_seconds
            try:
                async with asyncio.timeout(_BEGIN_SECONDS + longest):
                    await self._watch(operator, http)
            except TimeoutError as error:
                late = crew.late()
                some = ", ".join(map(str, late[:_SHOWN_LATE]))
                more = f" and {len(late) - _SHOWN_LATE} more" if late[_SHOWN_LATE:] else ""
                raise LabError(
                    f"the run is stuck: after {longest:.0f} s these viewers have not left: "
                    f"{some}{more}"
                ) from error

    async def _watch(self, operator: Operator, http: aiohttp.ClientSession) -> None:
        """Until everyone has left; fails as soon as anything does."""
        try:
            async with asyncio.TaskGroup() as group:
                guards = [
                    group.create_task(_must_not_end(operator.tracker)),
                    group.create_task(_must_not_end(operator.server)),
                    group.create_task(self._crew.guard()),
                    group.create_task(self._end_seeding()),
                    group.create_task(self._sample(operator, http)),
                ]
                await self._crew.everyone_left.wait()
                self._wall_seconds = time.monotonic() - self._zero
                for guard in guards:
                    guard.cancel()
        except BaseExceptionGroup as failed:
            known, unknown = failed.split(LabError)
            if known is None or unknown is not None:
                raise
            raise known.exceptions[0] from None
        await self._take_sample(operator, http)
        film = operator.film
        if not await asyncio.to_thread(is_right, film.path, film.sha256):
            raise LabError("a viewer has written into the film that all share: no figure holds")

    async def _end_seeding(self) -> None:
        """Viewers who seed leave when the last has seen the film, or when the run ends."""
        scenario = self._scenario
        if scenario.behaviour is not Behaviour.SEEDING:
            return
        await asyncio.sleep(self._zero + (scenario.run_seconds or 0.0) - time.monotonic())
        await self._crew.everyone_played.wait()
        self._crew.stop()

    async def _sample(self, operator: Operator, http: aiohttp.ClientSession) -> None:
        every = max(_LEAST_SAMPLE_SECONDS, self._scenario.end_seconds / _SAMPLES)
        while True:
            await self._take_sample(operator, http)
            await asyncio.sleep(every)

    async def _take_sample(self, operator: Operator, http: aiohttp.ClientSession) -> None:
        crew = self._crew
        self._sent = sent = await operator.sent(http)
        seconds = max(0.0, time.monotonic() - self._zero)
        watching = crew.count("watching")
        self._load.append(LoadSample(seconds, sent.http, sent.seed, watching))
        pids = (os.getpid(), operator.tracker.pid, operator.server.pid, *crew.pids)
        held = held_bytes(pids)
        if in_memory(self._folder):
            held += await asyncio.to_thread(stored_bytes, self._folder)
        self._peak_memory = max(self._peak_memory, held)
        end = self._scenario.end_seconds
        self._say(Progress(seconds, end, crew.count("arrived"), watching, crew.offload))

    def facts(self, cpu_seconds: float) -> RunFacts:
        rows = [row for _, row in sorted(self._crew.rows.items())]
        pauses = sorted(self._crew.pauses)
        notes = [
            self._note_on_network,
            note_on(self._scenario),
            _note_on_haste(self._crew.late_seconds),
            _note_on_pauses(pauses, [at for row in rows for at in row.stalled_at]),
        ]
        uploaded = sum(row.bytes_uploaded for row in rows)
        return RunFacts(
            engine="real",
            rows=rows,
            http_bytes=self._sent.http,
            seed_bytes=self._sent.seed,
            tracker_bytes=self._sent.tracker,
            total_bytes=self._sent.total + uploaded,
            load=self._load,
            wall_seconds=self._wall_seconds,
            cpu_seconds=cpu_seconds,
            peak_memory_bytes=self._peak_memory,
            pauses=pauses,
            notes=[note for note in notes if note is not None],
        )


def _check_room(scenario: Scenario, folder: Path) -> None:
    needed, free = storage_bytes(scenario), free_bytes(folder)
    if needed > free:
        raise ScenarioError(
            f"film.duration_seconds: the films of all who are there at once take"
            f" {format_bytes(needed)}, and {folder.parent} has room for {format_bytes(free)}:"
            " give another folder, a shorter film or fewer viewers"
        )


def _note_on_haste(late_seconds: float) -> str | None:
    """What is measured on a machine that has too much to do is the machine."""
    if late_seconds < _LATE_SECONDS:
        return None
    return (
        f"the machine was too busy: in one second of twenty viewers acted {late_seconds:.2f} s late"
        " or later, so that stalls and offload may be the laboratory's fault"
    )


def _note_on_pauses(
    pauses: Sequence[tuple[float, float]], stalled_at: Sequence[float]
) -> str | None:
    """Whose doing the stalls were."""
    near = [
        at
        for at in stalled_at
        if any(0.0 <= at - begun <= lasted + _SHADOW_SECONDS for begun, lasted in pauses)
    ]
    if not near:
        return None
    longest = max(lasted for _, lasted in pauses)
    return (
        f"{len(near)} of {len(stalled_at)} stalls began within {_SHADOW_SECONDS:g} s after a moment"
        f" at which the machine let viewers stand still (for {longest:.2f} s at most)"
    )


def _end_on_sigterm() -> None:
    """Who is told to end ends its programs, too."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(RuntimeError, ValueError):  # only the main thread hears signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _must_not_end(child: Child) -> None:
    code = await child.wait_end()
    raise LabError(f"{child.name} ended during the run (exit code {code}): {child.last_words}")


def _cpu_seconds() -> float:
    """Of this process and of all programs that it has seen end."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
