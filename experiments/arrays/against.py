"""Our server beside nginx over the same emulated disks: how many streams each of them sustains.

Every run is kept as a line of `nginx-real.runs.jsonl`, and is not made again.
"""

import asyncio
import contextlib
import hashlib
import json
import math
import shutil
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from experiments.arrays.demand import DEMANDS, Demand, asked, busiest, places
from experiments.arrays.library import Library, make_library
from experiments.arrays.nginx import WAYS
from experiments.arrays.real import scaled
from experiments.arrays.rivals import RIVALS, Rival
from experiments.arrays.runs import append_line
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.search import largest
from experiments.arrays.trial import play, pull
from experiments.errors import LabError
from experiments.figures.jobs import commit

__all__ = [
    "CELLS",
    "FIXED_STREAMS",
    "MOST_STREAMS",
    "SCENARIO",
    "SICK",
    "STEP",
    "WAY_RIVALS",
    "Cell",
    "Trials",
    "measure",
    "sustained_in",
]

SCENARIO: Final = scaled(4).with_(allocation="rda", hold_seconds=40.0)
SICK: Final = "one disk at half speed"
FIXED_STREAMS: Final = 56
"""Played by all with one disk at half speed: 0.7 of the closed form with well disks, 0.8 of what
is left of it."""
MOST_STREAMS: Final = 160
"""Streams that there are films for."""
STEP: Final = 2  # the search tells apart so many streams
_PULL_STREAMS: Final = 64
_PULL_SECONDS: Final = 15.0

_SHARED: Final = ("film per disk, shared reads", "raid0 of extents, shared reads")
_PLAIN: Final = ("toast", "film per disk", "raid0 of extents")


@dataclass(frozen=True, slots=True)
class Cell:
    """A server under a load."""

    rival: str
    demand: str


CELLS: Final = (
    *(Cell(rival, demand) for demand in DEMANDS for rival in _PLAIN),
    *(Cell(rival, demand) for demand in ("Zipf 0.5", "Zipf 1.0") for rival in _SHARED),
    *(Cell("raid0 of 32 KiB", demand) for demand in ("uniform", SICK)),
)
"""Where no film has two viewers, to share reads is of no use; and small stripes have no hot disk,
whoever is asked for."""

WAY_RIVALS: Final[Mapping[str, Rival]] = {
    **{name: Rival(way=name) for name in WAYS},
    "film per disk, elevator": Rival(order="elevator"),
    **{f"raid0 of {size} KiB": Rival(unit=size << 10) for size in (4, 16, 32, 60, 120, 240)},
}
"""Everything that nginx was tried with, at an even load of as much as it can do."""


class Trials:
    """Runs that were made: what they were, and what came of them.

    Args:
        path: a line of JSON for each.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[dict[str, Any]] = []
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8").splitlines():
                # A line may have been cut short by the end of a process, and what it tells of may
                # have been changed since.
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    row = json.loads(line)
                    if row["setup"] == _setup_of(row):
                        self.rows.append(row)

    def find(self, **what: Any) -> dict[str, Any] | None:
        """The run of a description."""
        return next((row for row in self.rows if what.items() <= row.items()), None)

    def keep(self, row: dict[str, Any]) -> None:
        """Note a run.

        Raises:
            LabError: it cannot be written.
        """
        append_line(self._path, row)
        self.rows.append(row)


def sustained_in(rows: list[dict[str, Any]], cell: Cell) -> dict[int, int]:
    """By seed, the most streams that a cell was seen to sustain, where the next more were not."""
    runs = {
        (row["seed"], row["streams"]): row["incidents"] == 0
        for row in rows
        if row.get("rival") == cell.rival and row["demand"] == cell.demand and not row["to_the_end"]
    }
    found: dict[int, int] = {}
    for (seed, streams), held in sorted(runs.items()):
        more = streams + STEP
        if held and (more > MOST_STREAMS or runs.get((seed, more)) is False):
            found[seed] = streams
    return found


class _Bench:
    """Makes the runs that are missing, so many at once."""

    def __init__(self, trials: Trials, folder: Path, jobs: int, notes: Console) -> None:
        self._trials = trials
        self._folder = folder
        self._notes = notes
        self._places = asyncio.Semaphore(jobs)
        self._searches = asyncio.Semaphore(jobs)
        self._store = asyncio.Lock()
        self._making = asyncio.Lock()

    async def library(self, seed: int) -> Library:
        """The films of a seed, for all loads; made if they are not there."""
        disks = len(SCENARIO.disks)
        wanted: set[int] = set()
        for demand in DEMANDS.values():
            wanted |= set(places(asked(demand, disks, MOST_STREAMS, seed), disks))
        folder = self._folder / f"films-{seed}"
        cancelled = threading.Event()
        make = partial(make_library, unwanted=cancelled.is_set)
        async with self._making:
            try:
                return await asyncio.to_thread(make, folder, SCENARIO, sorted(wanted), seed)
            except asyncio.CancelledError:
                cancelled.set()  # a thread cannot be ended from outside
                raise

    async def sustained(self, cell: Cell, seed: int) -> int:
        """The most streams of which none starves, by bisection."""
        async with self._searches:
            return await self._search(cell, seed)

    async def _search(self, cell: Cell, seed: int) -> int:
        loop = asyncio.get_running_loop()

        def holds(half: int) -> bool:
            streams = STEP * half
            if streams > MOST_STREAMS:
                return False
            run = self.play(cell, streams, seed)
            row = asyncio.run_coroutine_threadsafe(run, loop).result()
            return int(row["incidents"]) == 0

        guess = float(_guess(cell, SCENARIO, seed))
        for other, found in sustained_in(self._trials.rows, cell).items():
            guess = found * guess / _guess(cell, SCENARIO, other)
            break
        start = min(round(guess), MOST_STREAMS) // STEP
        return STEP * await asyncio.to_thread(largest, holds, start)

    async def play(
        self, cell: Cell, streams: int, seed: int, *, to_the_end: bool = False
    ) -> dict[str, Any]:
        """A run of paced clients; the one that was made, if it was."""
        what = {
            "rival": cell.rival,
            "demand": cell.demand,
            "streams": streams,
            "seed": seed,
            "to_the_end": to_the_end,
            "setup": _setup(RIVALS[cell.rival], DEMANDS[cell.demand]),
        }
        if row := self._trials.find(**what):
            return row
        rival = RIVALS[cell.rival]
        library = await self.library(seed)
        async with contextlib.AsyncExitStack() as stack:
            if rival.way is None:  # a store is open once
                await stack.enter_async_context(self._store)
            await stack.enter_async_context(self._places)
            result = await play(
                rival,
                SCENARIO,
                library,
                cell.demand,
                streams,
                seed=seed,
                folder=self._folder,
                to_the_end=to_the_end,
            )
        row = {**what, "commit": commit(), **result}
        self._trials.keep(row)
        self._notes.print(
            f"{cell.rival}, {cell.demand}: {streams} streams, {row['incidents']} incidents",
            highlight=False,
        )
        return row

    async def pull(self, name: str) -> None:
        """A run of clients that ask as fast as they can, unless it was made."""
        what = {"way": name, "setup": _setup(WAY_RIVALS[name], None)}
        if self._trials.find(**what):
            return
        library = await self.library(1)
        async with self._places:
            result = await pull(
                WAY_RIVALS[name],
                SCENARIO,
                library,
                _PULL_STREAMS,
                seconds=_PULL_SECONDS,
                seed=1,
                folder=self._folder,
            )
        self._trials.keep({**what, "commit": commit(), **result})
        self._notes.print(f"{name}: worth {result['streams_worth']} streams", highlight=False)


async def measure(folder: Path, *, seeds: int, jobs: int, notes: Console) -> Trials:
    """Make all runs that are missing.

    Args:
        folder: of the lines of runs; films and what runs need are below it while they last.
        seeds: searches of each cell.
        jobs: runs at once.
        notes: where it is told how far it is.

    Raises:
        LabError: a run failed.
    """
    trials = Trials(folder / "nginx-real.runs.jsonl")
    place = folder / "nginx-real-runs"
    bench = _Bench(trials, place, jobs, notes)
    try:
        async with asyncio.TaskGroup() as tasks:
            for name in WAY_RIVALS:
                tasks.create_task(bench.pull(name))
        for seed in range(1, seeds + 1):
            async with asyncio.TaskGroup() as tasks:
                for cell in CELLS:
                    if cell.demand == SICK:
                        tasks.create_task(bench.play(cell, FIXED_STREAMS, seed, to_the_end=True))
                for cell in CELLS:
                    tasks.create_task(bench.sustained(cell, seed))
    except BaseExceptionGroup as failed:  # not except*: it wraps what is raised inside it
        known, _ = failed.split(LabError)
        if known is None:
            raise
        # What else there may be are searches that were broken off because of it.
        raise known.exceptions[0] from None
    await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    return trials


def _setup(rival: Rival, demand: Demand | None) -> str:
    """A word that changes with whatever a run stands for."""
    described = [SCENARIO.describe(), asdict(rival), demand and asdict(demand)]
    if rival.way is not None:
        described.append(asdict(WAYS[rival.way]))
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def _setup_of(row: Mapping[str, Any]) -> str:
    """The same of what a line names, as that is now."""
    if "way" in row:
        return _setup(WAY_RIVALS[row["way"]], None)
    return _setup(RIVALS[row["rival"]], DEMANDS[row["demand"]])


def _guess(cell: Cell, scenario: ArrayScenario, seed: int) -> int:
    """About how many streams a cell sustains, by the closed form and its busiest disk."""
    rival, demand = RIVALS[cell.rival], DEMANDS[cell.demand]
    disks, model = len(scenario.disks), scenario.model_streams
    sick = bool(demand.faults)
    if rival.way is None:
        return math.floor(model * (1 - 0.5 / disks if sick else 1.0))
    if rival.unit is not None:
        share = min(1.0, rival.unit * disks / scenario.unit_bytes)
        if share < 1:
            disk = scenario.disks[0]
            seconds = disk.seconds(scenario.unit_bytes // disks, 0.5, 0.5)
            model = scenario.extent_seconds / seconds
        return math.floor(model * (0.5 if sick else 1.0))
    most, streams = model / disks, 2
    while streams < MOST_STREAMS:
        films = asked(demand, disks, streams + 1, seed)
        ours = sum(film % disks == 0 for film in films)
        if busiest(films, disks) > most or (sick and ours > most / 2):
            break
        streams += 1
    return streams
