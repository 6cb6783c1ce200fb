"""A figure as tasks, and its results as files: a picture, and JSON."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.errors import LabError
from experiments.figures.figure import Claim, Figure, Verdict, judge
from experiments.figures.plots import plot_figure
from experiments.figures.results import Results
from experiments.figures.sweep import Task
from experiments.swarms.changes import with_changes

__all__ = ["figure_tasks", "judge_all", "summarise", "sweep_name", "write_figure", "write_whole"]

Judged = Sequence[tuple[Claim, Verdict]]


def sweep_name(name: str, changes: Sequence[str]) -> str:
    """What a figure with some fields of its scenarios changed is called, for folders."""
    words = [name, *("".join(c if c.isalnum() or c in "._-=" else "-" for c in w) for w in changes)]
    return ",".join(words)


def figure_tasks(
    figure: Figure, engine: str, scale: str, seeds: int, changes: Sequence[str] = ()
) -> tuple[Task, ...]:
    """Everything to be run for a figure, all cells with the first seed first.

    Raises:
        ScenarioError: the changes are not possible.
    """
    cells = [
        replace(cell, scenario=with_changes(cell.scenario, changes)) if changes else cell
        for cell in figure.cells(scale)
    ]
    sweep = sweep_name(figure.name, changes)
    return tuple(
        Task(sweep, engine, scale, cell, cell.scenario.random_seed + nth)
        for nth in range(seeds)
        for cell in cells
    )


def judge_all(figure: Figure, results: Results) -> Judged:
    """Every claim of a figure with its verdict."""
    return [(claim, judge(claim, results)) for claim in figure.claims]


def summarise(
    figure: Figure, results: Results, *, name: str, engine: str, scale: str
) -> dict[str, Any]:
    """A figure as plain data, for JSON."""
    return {
        "figure": name,
        "title": figure.title,
        "engine": engine,
        "scale": scale,
        "field": figure.field,
        "cells": results.to_list(figure.field),
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


def write_figure(
    folder: Path, figure: Figure, results: Results, *, name: str, engine: str, scale: str
) -> list[Path]:
    """Write a figure's picture and data; the paths of both, or of the data alone without results.

    Raises:
        LabError: they cannot be written.
    """
    stem = folder / f"figure-{name}-{engine}-{scale}"
    data = (
        json.dumps(summarise(figure, results, name=name, engine=engine, scale=scale), indent=1)
        + "\n"
    )
    # Not with_suffix: the name of a figure has a dot of its own.
    written = [write_whole(Path(f"{stem}.json"), data.encode())]
    if results.cells:
        written.append(write_whole(Path(f"{stem}.png"), plot_figure(figure, results)))
    return written


def write_whole(path: Path, contents: bytes) -> Path:
    """Write a file: all of it, or nothing; its path.

    Raises:
        LabError: it cannot be written.
    """
    unfinished = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(contents)
        unfinished.replace(path)
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    return path
