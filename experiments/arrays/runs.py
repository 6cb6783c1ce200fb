"""Finished measurements, a line of JSON each: `FOLDER/<figure>-<engine>.runs.jsonl`.

A line stands for what was measured, described in full, and a seed. A sweep makes what has no line
yet; a line that was cut short by the end of a process, and lines of cells as they no longer are,
count for nothing.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from experiments.arrays.work import measure
from experiments.errors import LabError
from experiments.figures.figure import FigureCell
from experiments.figures.jobs import commit
from experiments.figures.results import CellResults, Results

__all__ = ["Measured", "Measurer", "Runs", "append_line", "make_missing"]

Measurer = Callable[[Any, int], Mapping[str, Any]]
"""Makes the figures of a cell with a seed; picklable."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell with a seed, that is to be measured.

    Attributes:
        cell: which.
        seed: of all chance.
    """

    cell: FigureCell
    seed: int

    @property
    def key(self) -> str:
        """What its figures stand for."""
        plain = json.dumps(self.cell.scenario.describe(), sort_keys=True)
        return f"{hashlib.sha256(plain.encode()).hexdigest()[:16]}-{self.seed}"


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Note something at the end of a file of lines; it is made if need be.

    Raises:
        LabError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}") from error


class Runs:
    """The measurements of a figure.

    Args:
        path: their file; made when the first is kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_key: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    row = json.loads(line)
                    self._by_key[str(row["key"])] = dict(row["figures"])

    def __contains__(self, measured: Measured) -> bool:
        """Whether it was made."""
        return measured.key in self._by_key

    def keep(self, measured: Measured, figures: Mapping[str, Any]) -> None:
        """Note a measurement.

        Raises:
            LabError: it cannot be written.
        """
        row = {
            "cell": measured.cell.name,
            "seed": measured.seed,
            "key": measured.key,
            "commit": commit(),
            "figures": dict(figures),
        }
        append_line(self._path, row)
        self._by_key[measured.key] = dict(figures)

    def results(self, cells: Iterable[FigureCell], seeds: Sequence[int]) -> Results:
        """What was measured of cells."""
        return Results(
            CellResults(
                cell.name,
                cell.axes,
                {
                    seed: SimpleNamespace(**self._by_key[Measured(cell, seed).key])
                    for seed in seeds
                    if Measured(cell, seed) in self
                },
            )
            for cell in cells
        )


def make_missing(
    runs: Runs, wanted: Sequence[Measured], jobs: int, measurer: Measurer = measure
) -> Iterator[Measured]:
    """Measure what is missing, so many at once in processes; each is kept before it is given out.

    Raises:
        LabError: one failed.
    """
    missing = {each.key: each for each in wanted if each not in runs}
    if not missing:
        return
    tasks = [(measurer, key, each.cell.scenario, each.seed) for key, each in missing.items()]
    # Left early, by an error or Ctrl-C, it ends what its processes are at.
    with get_context("spawn").Pool(min(jobs, len(tasks))) as pool:
        for key, figures in pool.imap_unordered(_carry_out, tasks):
            runs.keep(missing[key], figures)
            yield missing[key]


def _carry_out(task: tuple[Measurer, str, Any, int]) -> tuple[str, Mapping[str, Any]]:
    """Do a measurement, in a process of its own; its key, and its figures."""
    measurer, key, work, seed = task
    return key, measurer(work, seed)
