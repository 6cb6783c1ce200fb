"""Measurements in a file: kept, resumed, and never mistaken."""

import json

import pytest

from experiments.arrays.runs import Measured, Runs, make_missing
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.work import Measure, Work
from experiments.errors import LabError
from experiments.figures.figure import FigureCell


def cell(name="a", **changes):
    scenario = ArrayScenario(hold_seconds=10.0, **changes)
    return FigureCell(name, Work(scenario=scenario, measure=Measure.RUN, streams=5), {"name": name})


def test_what_was_measured_is_there_afterwards(tmp_path):
    runs, wanted = Runs(tmp_path / "x.jsonl"), Measured(cell(), 1)
    runs.keep(wanted, {"streams": 7})
    again = Runs(tmp_path / "x.jsonl")
    assert wanted in again
    assert Measured(cell(), 2) not in again
    assert again.results([cell()], [1, 2]).mean("streams", name="a") == 7


def test_a_cell_that_changed_is_another(tmp_path):
    runs = Runs(tmp_path / "x.jsonl")
    runs.keep(Measured(cell(), 1), {"streams": 7})
    assert Measured(cell(allocation="raid1"), 1) not in runs
    assert Measured(cell("another name"), 1) in runs


def test_a_line_that_was_cut_short_counts_for_nothing(tmp_path):
    path = tmp_path / "x.jsonl"
    Runs(path).keep(Measured(cell(), 1), {"streams": 7})
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 2] + "\nnull\n")
    assert Measured(cell(), 1) in Runs(path)


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    runs = Runs(tmp_path / "file2" / "x.jsonl")
    (tmp_path / "file2").write_text("")
    with pytest.raises(LabError, match="cannot be written"):
        runs.keep(Measured(cell(), 1), {"streams": 7})


@pytest.mark.slow
def test_only_what_is_missing_is_made(tmp_path):
    runs = Runs(tmp_path / "x.jsonl")
    runs.keep(Measured(cell(), 1), {"streams": 7})
    wanted = [Measured(cell(), 1), Measured(cell(), 2)]
    assert list(make_missing(runs, wanted, 1)) == wanted[1:]
    assert list(make_missing(runs, wanted, 1)) == []
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [row["seed"] for row in rows] == [1, 2]
    assert rows[1]["figures"]["streams"] == 5
