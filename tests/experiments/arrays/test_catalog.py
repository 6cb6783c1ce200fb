"""The figures of disk arrays: their cells, their claims, and that a small one can be made."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from experiments.arrays.catalog import ARRAY_FIGURES
from experiments.arrays.make import find_array_figures, make_array_figure, show_array_figure
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.work import Measure, Work, measure
from experiments.errors import ScenarioError
from experiments.figures.figure import FigureCell, judge
from experiments.figures.plots import plot_figure
from experiments.figures.results import CellResults, Results

every = pytest.mark.parametrize("name", ARRAY_FIGURES)


def made_up(figure):
    """Results of every cell, no two alike."""
    fields = ("streams", "incidents", "starved_mean_seconds", "starved_max_seconds")
    return Results(
        CellResults(
            cell.name,
            cell.axes,
            {
                seed: SimpleNamespace(
                    model_streams=100.0 + number,
                    response_p99_seconds=1.0 + number,
                    **dict.fromkeys(fields, 90.0 + number + seed / 10),
                )
                for seed in (1, 2)
            },
        )
        for number, cell in enumerate(figure.cells("source"))
    )


def test_every_figure_of_the_source_is_there():
    names = {"3.2", "3.3", "3.4", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7"}
    assert names <= set(ARRAY_FIGURES)
    assert find_array_figures("arrays") == tuple(ARRAY_FIGURES.values())
    assert find_array_figures("5.3") == ()


@every
def test_every_cell_has_a_name_and_a_place_of_its_own(name):
    figure = ARRAY_FIGURES[name]
    cells = figure.cells("source")
    places = [(cell.axes[figure.series], *(cell.axes[axis] for axis in figure.x)) for cell in cells]
    assert len(set(places)) == len(cells) == len({cell.name for cell in cells})
    assert len({json.dumps(cell.scenario.describe(), sort_keys=True) for cell in cells}) >= (
        len(cells) - 1  # rda's load is the same whatever a disk of naive is overloaded by
        if name != "4.4"
        else 1
    )


@every
def test_every_claim_is_decided_by_the_figures_own_cells(name):
    figure = ARRAY_FIGURES[name]
    for claim in figure.claims:
        verdict = judge(claim, made_up(figure))
        assert verdict.number is not None, (claim.text, verdict.words)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["3.4", "4.3", "4.5"])
def test_a_picture_can_be_drawn(name):
    figure = ARRAY_FIGURES[name]
    assert plot_figure(figure, made_up(figure)).startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_small_figure_is_made_and_told(tmp_path, monkeypatch):
    scenario = ArrayScenario(hold_seconds=10.0)
    work = Work(scenario=scenario, measure=Measure.RUN, streams=8)
    small = replace(
        ARRAY_FIGURES["sick"],
        name="small",
        cells=lambda _: (FigureCell("one", work, {"placement": "rda", "load": "0.90"}),),
    )
    monkeypatch.setattr("experiments.arrays.make.ARRAY_FIGURES", {"small": small})
    console = Console(record=True, width=100, file=io.StringIO())
    results = make_array_figure(small, tmp_path, seeds=2, jobs=1, notes=console)
    show_array_figure(small, results, console)
    written = json.loads((tmp_path / "small-sim.json").read_text())
    assert written["cells"][0]["seeds"] == [1, 2]
    assert [claim["reproduced"] for claim in written["claims"]] == [None] * 6
    assert (tmp_path / "small-sim.png").read_bytes().startswith(b"\x89PNG")
    assert "cannot tell" in console.export_text()


def test_a_cell_can_be_run_at_what_its_array_sustains():
    scenario = ArrayScenario(disks=ArrayScenario().disks[:1], allocation="naive", hold_seconds=20.0)
    found = measure(Work(scenario=scenario), 1)
    told = measure(Work(scenario=scenario, measure=Measure.AT_SUSTAINED), 1)
    assert told["streams"] == found["streams"]
    assert told["incidents"] == 0
    with pytest.raises(ScenarioError, match="a single stream"):
        measure(Work(scenario=scenario, measure=Measure.RUN, share=0.001), 1)
