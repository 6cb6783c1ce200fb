"""Figures of arrays for real: the server's own process at what the simulator predicts.

A figure's bars are made one by one, or so many side by side, and each is kept when it is over:
what is kept is not made again, unless the machine had been too busy for it. All figures share one
file, since some share runs.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from rich.console import Console

from experiments.arrays.real import run_real
from experiments.arrays.runs import Runs
from experiments.arrays.trials import Planned, is_search, plan
from experiments.errors import LabError
from experiments.figures.figure import Figure
from experiments.figures.jobs import machine
from experiments.figures.make import judge_all, write_whole
from experiments.figures.plots import plot_figure
from experiments.figures.results import CellResults, Results
from experiments.real.memory import MEMORY_FOLDER, free_bytes, stay_in_memory

__all__ = ["confirm"]

_NOTE: Final = (
    "Four disks, 5 s of film in reads of a quarter of a second: 3.3 times as long as the source's, "
    "with 15 times fewer bytes, and the same part of it a seek."
)
_RUN_BYTES: Final = 3 << 30
"""Of a run's store, with room to spare."""
_MOST_LATE_SECONDS: Final = 0.1
"""A run whose clients woke later than this, one time in a hundred, was disturbed by what else the
machine did; a read takes a quarter of a second."""
_SAID: Final = ("streams", "refused", "incidents", "starved_mean_seconds", "starved_max_seconds")


def confirm(
    figure: Figure, folder: Path, *, seeds: int, jobs: int = 1, notes: Console
) -> dict[str, Any]:
    """Make the real runs of a figure that are missing, and say what came of all.

    Args:
        figure: one that can be made for real.
        folder: where runs are kept, and the figure is written.
        seeds: runs of each bar, or of each side of it.
        jobs: how many runs at once.
        notes: where it is told how far it is.

    Raises:
        LabError: a run failed; the others have been made.
    """
    runs = Runs(folder / "real.runs.jsonl")
    notes.print(f"figure {figure.name}: asking the simulator", highlight=False)
    planned = list(plan(figure, range(1, seeds + 1)))
    stay_in_memory()
    try:
        asyncio.run(_make(planned, runs, jobs, _scratch(folder, jobs), notes))
    finally:  # what was made before a run failed, or somebody had enough, is told as well
        told = _write(figure, folder, [each for each in planned if each.measured in runs], runs)
    return told


def _write(figure: Figure, folder: Path, made: Sequence[Planned], runs: Runs) -> dict[str, Any]:
    told = _summary(figure, made, runs)
    stem = f"{folder / figure.name}-real"
    write_whole(Path(f"{stem}.json"), (json.dumps(told, indent=1) + "\n").encode())
    if made and not is_search(figure):
        write_whole(Path(f"{stem}.png"), plot_figure(figure, _results(made, runs)))
    return told


async def _make(
    planned: Sequence[Planned], runs: Runs, jobs: int, scratch: Path, notes: Console
) -> None:
    """Make what is missing, or was disturbed, so many runs side by side."""
    missing = {each.measured.key: each for each in planned if not _is_made(each, runs)}
    room, failures = asyncio.Semaphore(jobs), list[LabError]()

    async def make(number: int, each: Planned) -> None:
        trial, cell, seed = each.trial, each.measured.cell, each.measured.seed
        async with room:
            words = f"{number} of {len(missing)}: {cell.name}, {trial.streams} streams"
            notes.print(words, highlight=False)
            load = round(os.getloadavg()[0], 2)
            try:
                run = await run_real(trial.scenario, trial.streams, seed=seed, folder=scratch)
            except LabError as error:
                notes.print(f"{cell.name}: {error}", highlight=False)
                failures.append(error)
                return
            runs.keep(each.measured, {**run.to_dict(), "load_before": load})

    async with asyncio.TaskGroup() as tasks:
        for number, each in enumerate(missing.values(), 1):
            tasks.create_task(make(number, each))
    if failures:
        raise LabError(f"{len(failures)} of {len(missing)} runs failed: {failures[0]}")


def _is_made(each: Planned, runs: Runs) -> bool:
    """Whether there is a run, on a machine that was not too busy for it."""
    return each.measured in runs and not _is_disturbed(vars(_figures(each, runs)))


def _is_disturbed(figures: Mapping[str, Any]) -> bool:
    return float(figures["late_p99_seconds"]) > _MOST_LATE_SECONDS


def _scratch(folder: Path, jobs: int) -> Path:
    """Where runs keep their stores: in memory if there is room, where no real disk is slow."""
    if MEMORY_FOLDER.exists() and free_bytes(MEMORY_FOLDER) > 2 * jobs * _RUN_BYTES:
        return MEMORY_FOLDER
    return folder / "real-runs"


def _figures(each: Planned, runs: Runs) -> SimpleNamespace:
    cell, seed = each.measured.cell, each.measured.seed
    found: SimpleNamespace = runs.results([cell], [seed]).cells[0].runs[seed]
    return found


def _results(planned: Sequence[Planned], runs: Runs) -> Results:
    cells = {each.measured.cell.name: each.measured.cell for each in planned}
    return Results(
        CellResults(
            name,
            cell.axes,
            {
                each.measured.seed: _figures(each, runs)
                for each in planned
                if each.measured.cell.name == name
            },
        )
        for name, cell in cells.items()
    )


def _summary(figure: Figure, planned: Sequence[Planned], runs: Runs) -> dict[str, Any]:
    """A figure's real runs as plain data, each beside what the simulator says of it."""
    rows = []
    for each in planned:
        row: dict[str, Any] = {"cell": each.measured.cell.name, **each.measured.cell.axes}
        row["seed"] = each.measured.seed
        if each.share is not None:
            row |= {"share": each.share, "sustained_simulated": each.sustained}
        simulated = each.simulated().to_dict()
        row["simulated"] = {name: simulated[name] for name in _SAID}
        rows.append({**row, **vars(_figures(each, runs))})
    told: dict[str, Any] = {
        "figure": figure.name,
        "title": figure.title,
        "engine": "real",
        "note": _NOTE,
        "machine": machine(),
        "disturbed": sum(_is_disturbed(row) for row in rows),
    }
    if is_search(figure):
        below = [row for row in rows if row["share"] < 1]
        above = [row for row in rows if row["share"] > 1]
        told |= {
            "held_below": sum(row["incidents"] == 0 for row in below),
            "runs_below": len(below),
            "starved_above": sum(row["incidents"] > 0 for row in above),
            "runs_above": len(above),
        }
    else:
        told["claims"] = [
            {"claim": claim.text, "reproduced": verdict.reproduced, "words": verdict.words}
            for claim, verdict in judge_all(figure, _results(planned, runs))
        ]
    return {**told, "runs": rows}
