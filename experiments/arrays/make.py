"""A figure of disk arrays from its measurements: a picture, JSON, and tables on a terminal."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from experiments.arrays.catalog import ARRAY_FIGURES
from experiments.arrays.pieces import PieceWork, measure_pieces
from experiments.arrays.runs import Measured, Runs, make_missing
from experiments.arrays.trials import REAL_FIGURES
from experiments.arrays.work import Work, measure
from experiments.errors import ScenarioError
from experiments.figures.figure import Figure
from experiments.figures.jobs import machine
from experiments.figures.make import judge_all, write_whole
from experiments.figures.plots import plot_figure
from experiments.figures.results import CellResults, Results
from experiments.figures.tables import show_claims

__all__ = [
    "check_array_options",
    "find_array_figures",
    "make_array_figure",
    "show_array_figure",
    "summarise",
]

_DETAILS: Final = (
    "streams",
    "model_streams",
    "incidents",
    "starved_mean_seconds",
    "starved_max_seconds",
    "starved_streams",
    "refused",
    "requests_per_second",
    "response_p50_seconds",
    "response_p99_seconds",
    "hit_share",
)
"""What is told of a cell besides what is plotted, where its runs have it."""


def find_array_figures(name: str) -> tuple[Figure, ...]:
    """The figure of a name, or "arrays": all of them; none if it is no figure of arrays."""
    if name == "arrays":
        return tuple(ARRAY_FIGURES.values())
    figure = ARRAY_FIGURES.get(name)
    return () if figure is None else (figure,)


def check_array_options(
    name: str, engine: str, changes: Sequence[str], how: Mapping[str, Any]
) -> None:
    """Refuse options that figures of arrays do not have.

    Raises:
        ScenarioError: which.
    """
    if engine != "sim" and name not in REAL_FIGURES:
        raise ScenarioError(f"of disk arrays, these have --engine real: {', '.join(REAL_FIGURES)}")
    if changes or how.get("dask") or how.get("again"):
        raise ScenarioError("figures of disk arrays have no --set, no --dask and no --again")


def make_array_figure(
    figure: Figure, folder: Path, *, seeds: int, jobs: int | None, notes: Console
) -> Results:
    """Measure what is missing of a figure, and write its picture and data.

    Args:
        figure: which.
        folder: where measurements are kept, and the figure is written.
        seeds: measurements of each cell.
        jobs: how many at once; as many as there are cores if None.
        notes: where progress is shown.

    Raises:
        LabError: a measurement failed, or a file cannot be written.
    """
    cells = figure.cells("source")
    # Figures that show several sides of the same runs share them.
    first = next(f for f in ARRAY_FIGURES.values() if f.cells is figure.cells)
    runs = Runs(folder / f"{first.name}-sim.runs.jsonl")
    numbers = range(1, seeds + 1)
    wanted = [Measured(cell, seed) for seed in numbers for cell in cells]
    missing = sum(each not in runs for each in wanted)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(f"figure {figure.name}", total=missing)
        for _ in make_missing(runs, wanted, jobs or os.cpu_count() or 1, _measure):
            bar.advance(task)
    results = runs.results(cells, numbers)
    stem = f"{folder / figure.name}-sim"
    text = json.dumps(summarise(figure, results), indent=1) + "\n"
    write_whole(Path(f"{stem}.json"), text.encode())
    write_whole(Path(f"{stem}.png"), plot_figure(figure, results))
    return results


def _measure(work: Work | PieceWork, seed: int) -> Mapping[str, Any]:
    return measure_pieces(work, seed) if isinstance(work, PieceWork) else measure(work, seed)


def summarise(figure: Figure, results: Results) -> dict[str, Any]:
    """A figure as plain data, for JSON."""
    return {
        "figure": figure.name,
        "title": figure.title,
        "engine": "sim",
        "field": figure.field,
        "note": figure.note,
        "machine": machine(),
        "cells": [_row(figure, cell) for cell in results.cells],
        "claims": [
            {
                "claim": claim.text,
                "reproduced": verdict.reproduced,
                "number": None if verdict.number is None else round(verdict.number, 5),
                "words": verdict.words,
            }
            for claim, verdict in judge_all(figure, results)
        ],
    }


def _row(figure: Figure, cell: CellResults) -> dict[str, Any]:
    value = cell.estimate(figure.field)
    first = next(iter(cell.runs.values()))
    details = [name for name in _DETAILS if hasattr(first, name) and name != figure.field]
    return {
        "cell": cell.name,
        "axes": dict(cell.axes),
        figure.field: round(value.mean, 4),
        "half_width_95": round(value.half_width, 4),
        "seeds": sorted(cell.runs),
        **{name: round(cell.estimate(name).mean, 4) for name in details},
    }


def show_array_figure(figure: Figure, results: Results, console: Console) -> None:
    """Cells and claims on a terminal."""
    console.rule(f"{figure.name}: {figure.title}")
    table = Table(box=None, pad_edge=False)
    columns = [figure.field, *(name for name in _shown(figure, results) if name != figure.field)]
    for nth, heading in enumerate(("cell", *columns, "seeds")):
        table.add_column(heading, justify="right" if nth else "left", no_wrap=True)
    for cell in results.cells:
        values = [cell.estimate(name) if cell.values(name) else None for name in columns]
        texts = ["-" if v is None else f"{v.mean:.4g} ± {v.half_width:.2g}" for v in values]
        table.add_row(cell.name, *texts, str(len(cell.runs)))
    console.print(table)
    show_claims(judge_all(figure, results), console)
    if figure.note:
        console.print(f"({figure.note})", highlight=False)


def _shown(figure: Figure, results: Results) -> Sequence[str]:
    """What stands beside the field that is plotted."""
    if not results.cells:
        raise ScenarioError(f"there is no result of figure {figure.name}")
    if figure.field == "streams":
        return ("model_streams",)
    return ("streams", "incidents", "starved_mean_seconds", "starved_max_seconds")
