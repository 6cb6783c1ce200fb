"""Many cells, each run once: what is there already stands, the rest is run and kept as it ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.figures.figure import FigureCell
from experiments.figures.jobs import Job, Outcome, Outcomes, Runner, Tell
from experiments.figures.records import Done, Record, Records, scenario_key
from experiments.figures.results import CellResults, Results
from experiments.swarms.text import describe

__all__ = ["Sweep", "Task", "gather"]


@dataclass(frozen=True, slots=True)
class Task:
    """One cell with one seed, in one sweep.

    Attributes:
        sweep: the figure or sweep.
        engine: by name.
        scale: of the figure, or "-".
        cell: of the figure.
        seed: of all chance.
    """

    sweep: str
    engine: str
    scale: str
    cell: FigureCell
    seed: int

    @property
    def described(self) -> dict[str, Any]:
        """Its scenario as plain data."""
        return describe(self.cell.scenario.with_(random_seed=self.seed))

    @property
    def key(self) -> str:
        """What a result of it stands for."""
        return scenario_key(self.engine, self.described)

    def record(self, done: Done) -> Record:
        """A result of it at its place."""
        return Record(
            sweep=self.sweep,
            engine=self.engine,
            scale=self.scale,
            cell=self.cell.name,
            seed=self.seed,
            axes=dict(self.cell.axes),
            done=replace(done, result=replace(done.result, scenario=self.described)),
        )


class Sweep:
    """Tasks, and the records that they are to become.

    Args:
        records: where results stand.
        tasks: in the order in which they are to be run.
        again: also what there is a result of.

    Attributes:
        missing: jobs that have to be run.
        failures: those that failed, so far; what an engine cannot do is none.
    """

    def __init__(self, records: Records, tasks: Iterable[Task], *, again: bool = False) -> None:
        self._records = records
        self._tasks: dict[str, list[Task]] = {}
        self.missing: list[Job] = []
        self.failures: list[Outcome] = []
        for task in tasks:
            self._tasks.setdefault(task.key, []).append(task)
        for key, alike in self._tasks.items():
            standing = None if again else records.standing(key)
            if standing is None:
                first = alike[0]
                label = f"{first.cell.name}, seed {first.seed}"
                self.missing.append(Job(key, label, first.described))
            else:
                self._keep(alike, standing.done)

    def run(self, runner: Runner, tell: Tell) -> Outcomes:
        """Run what is missing. Every outcome is kept before it is given out."""
        outcomes = runner(self.missing, tell)
        try:
            for outcome in outcomes:
                if outcome.done is not None:
                    self._keep(self._tasks[outcome.job.key], outcome.done)
                elif outcome.is_possible:
                    self.failures.append(outcome)
                yield outcome
        finally:
            outcomes.close()

    def _keep(self, tasks: Sequence[Task], done: Done) -> None:
        for task in tasks:
            record = task.record(done)
            place = self._records.at(
                record.sweep, record.engine, record.scale, record.cell, record.seed
            )
            if place != record:
                self._records.keep(record)


def gather(records: Records, tasks: Iterable[Task]) -> Results:
    """The results that stand for tasks: the same engine, and the scenario as it is now."""
    cells: dict[str, tuple[FigureCell, dict[int, Any]]] = {}
    for task in tasks:
        _, runs = cells.setdefault(task.cell.name, (task.cell, {}))
        standing = records.standing(task.key)
        if standing is not None:
            runs[task.seed] = standing.done.result
    return Results(CellResults(cell.name, cell.axes, runs) for cell, runs in cells.values())
