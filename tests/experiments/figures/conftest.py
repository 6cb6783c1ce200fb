"""Results of every figure, made up."""

import pytest

from experiments.figures.catalog import KNOWN
from experiments.figures.figure import make_cell
from experiments.figures.results import CellResults, Results
from experiments.figures.sweep import Task
from tests.experiments.figures.fake import FakeEngine

SEEDS = (1, 2, 3)


@pytest.fixture(scope="session")
def results_of():
    """The results of a figure's cells at the quick scale, with three seeds."""
    engine = FakeEngine()
    known = {}

    def make(name):
        if name not in known:
            known[name] = Results(
                CellResults(
                    cell.name,
                    cell.axes,
                    {seed: engine.run(cell.scenario.with_(random_seed=seed)) for seed in SEEDS},
                )
                for cell in KNOWN[name].cells("quick")
            )
        return known[name]

    return make


@pytest.fixture
def task():
    """Makes tasks of small cells."""

    def make(picker="hybrid", seed=1, sweep="5.3", name=None):
        cell = make_cell("quick", picker, changes={"viewers": 2})
        if name is not None:
            cell = type(cell)(name, cell.scenario.with_(name=name), cell.axes)
        return Task(sweep, "sim", "quick", cell, seed)

    return make
