"""What came of the comparison with nginx: a picture, JSON, and tables on a terminal."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from experiments.arrays.against import (
    CELLS,
    FIXED_STREAMS,
    SCENARIO,
    SICK,
    STEP,
    Trials,
    measure,
    sustained_in,
)
from experiments.errors import ScenarioError
from experiments.figures.claims import lies_in
from experiments.figures.figure import Claim, Figure, FigureCell
from experiments.figures.jobs import machine
from experiments.figures.make import judge_all, write_whole
from experiments.figures.plots import plot_figure
from experiments.figures.results import CellResults, Results

__all__ = ["AGAINST", "check_against_options", "make_against", "show_against", "summarise_against"]

AGAINST: Final = "nginx"
"""The figure's name."""
_JOBS: Final = 2
_OURS: Final = "toast"
_SICK_FIELDS: Final = (
    "incidents",
    "starved_streams",
    "starved_mean_seconds",
    "starved_max_seconds",
    "starved_seconds",
)


def _ratio(results: Results, rival: str, demand: str) -> float:
    ours = results.mean("streams", rival=_OURS, demand=demand)
    return ours / results.mean("streams", rival=rival, demand=demand)


def _at_least(least: float, rival: str, demand: str) -> Claim:
    return lies_in(
        f"{demand}: at least {least:g} x nginx, {rival} (ours)",
        lambda results: _ratio(results, rival, demand),
        least,
        float("inf"),
        lambda ratio: f"{ratio:.2f}",
    )


FIGURE: Final = Figure(
    name=AGAINST,
    title="Streams that are sustained over the same four emulated disks",
    x=("demand",),
    series="rival",
    cells=lambda _: tuple(
        FigureCell(
            f"{cell.demand}-{cell.rival}", cell, {"demand": cell.demand, "rival": cell.rival}
        )
        for cell in CELLS
    ),
    claims=tuple(
        _at_least(2.0, rival, demand)
        for rival, demand in (
            ("film per disk", "Zipf 1.0"),
            ("film per disk, shared reads", "Zipf 1.0"),
            ("raid0 of extents", "Zipf 1.0"),
            ("raid0 of extents, shared reads", "Zipf 1.0"),
            ("film per disk", "one disk +80 %"),
            ("film per disk", SICK),
            ("raid0 of extents", SICK),
        )
    ),
    field="streams",
    note="Four disks; a read of an extent takes a quarter of a second. All but toast are nginx.",
)


def check_against_options(engine: str, changes: Sequence[str], how: Mapping[str, Any]) -> None:
    """Refuse options that this figure does not have.

    Raises:
        ScenarioError: which.
    """
    if engine != "real":
        raise ScenarioError(f"figure {AGAINST} is measured with real servers: add --engine real")
    if changes or how.get("dask") or how.get("again"):
        raise ScenarioError(f"figure {AGAINST} has no --set, no --dask and no --again")


def make_against(folder: Path, *, seeds: int, jobs: int | None, notes: Console) -> dict[str, Any]:
    """Measure what is missing, and write the picture and its data.

    Args:
        folder: of the results.
        seeds: searches of each cell.
        jobs: runs at once; two if None: more would take the processor from one another.
        notes: where it is told how far it is.

    Raises:
        LabError: a run failed, or a file cannot be written.
    """
    trials = asyncio.run(measure(folder, seeds=seeds, jobs=jobs or _JOBS, notes=notes))
    told = summarise_against(trials)
    stem = f"{folder / AGAINST}-real"
    write_whole(Path(f"{stem}.json"), (json.dumps(told, indent=1) + "\n").encode())
    write_whole(Path(f"{stem}.png"), plot_figure(FIGURE, _results(trials)))
    return told


def summarise_against(trials: Trials) -> dict[str, Any]:
    """The comparison as plain data, for JSON."""
    results = _results(trials)
    played = [row for row in trials.rows if "rival" in row]
    return {
        "figure": AGAINST,
        "title": FIGURE.title,
        "engine": "real",
        "note": FIGURE.note,
        "machine": machine(),
        "model_streams": round(SCENARIO.model_streams, 2),
        "step": STEP,
        "server_cores_most": max((row["server_cores"] for row in played), default=0.0),
        "client_cores_most": max((row["client_cores"] for row in played), default=0.0),
        "load_before_most": max((row["load_before"] for row in played), default=0.0),
        "commits": sorted({row["commit"] for row in trials.rows}),
        "cells": [_cell_row(trials, results, cell) for cell in results.cells],
        "claims": [
            {"claim": claim.text, "reproduced": verdict.reproduced, "words": verdict.words}
            for claim, verdict in judge_all(FIGURE, results)
        ],
        "sick": [
            {"rival": row["rival"], "seed": row["seed"], "streams": row["streams"]}
            | {field: row[field] for field in _SICK_FIELDS}
            for row in played
            if row["to_the_end"]
        ],
        "ways": sorted(
            (
                {name: row[name] for name in ("way", "streams_worth", "server_cores")}
                for row in trials.rows
                if "way" in row
            ),
            key=lambda row: -float(row["streams_worth"]),
        ),
    }


def show_against(told: Mapping[str, Any]) -> None:
    """The comparison on a terminal."""
    console = Console()
    table = Table("load", "server", title="streams sustained", box=None, pad_edge=False)
    for heading in ("streams", "ours is x", "seeds"):
        table.add_column(heading, justify="right")
    for row in told["cells"]:
        axes, ratio = row["axes"], row["ratio"]
        shown = "-" if ratio is None else f"{ratio:.2f}"
        streams = f"{row['streams']:g}"
        table.add_row(axes["demand"], axes["rival"], streams, shown, str(len(row["by_seed"])))
    console.print(table)
    table = Table("server", title=f"{FIXED_STREAMS} streams, {SICK}", box=None, pad_edge=False)
    for heading in ("incidents", "mean, s", "longest, s"):
        table.add_column(heading, justify="right")
    for row in told["sick"]:
        seconds = (row["starved_mean_seconds"], row["starved_max_seconds"])
        table.add_row(row["rival"], str(row["incidents"]), *(f"{each:.2f}" for each in seconds))
    console.print(table)
    for claim in told["claims"]:
        console.print(f"{claim['claim']}: {claim['words']}", highlight=False)


def _cell_row(trials: Trials, results: Results, cell: CellResults) -> dict[str, Any]:
    value = cell.estimate("streams")
    ours = cell.axes["rival"] == _OURS
    runs = [
        [row["seed"], row["streams"], row["incidents"]]
        for row in trials.rows
        if cell.axes.items() <= row.items() and not row["to_the_end"]
    ]
    ratio = None if ours else round(_ratio(results, **cell.axes), 3)
    return {
        "axes": dict(cell.axes),
        "streams": round(value.mean, 2),
        "by_seed": {str(seed): int(n) for seed, n in cell.values("streams").items()},
        "ratio": ratio,
        "runs_seed_streams_incidents": sorted(runs),
    }


def _results(trials: Trials) -> Results:
    return Results(
        CellResults(
            cell.name,
            cell.axes,
            {
                seed: SimpleNamespace(streams=streams)
                for seed, streams in sustained_in(trials.rows, cell.scenario).items()
            },
        )
        for cell in FIGURE.cells("source")
    )
