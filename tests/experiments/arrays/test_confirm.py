"""Figures for real: what was run is kept, and told beside what was predicted."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from experiments.arrays import confirm as confirming
from experiments.arrays.catalog import ARRAY_FIGURES
from experiments.arrays.confirm import confirm
from experiments.arrays.make import check_array_options
from experiments.arrays.real import RealRun
from experiments.errors import LabError, ScenarioError
from tests.experiments.arrays.make import make_result


def only(name, *cells):
    figure = ARRAY_FIGURES[name]
    found = tuple(cell for cell in figure.cells("source") if cell.name in cells)
    return replace(figure, cells=lambda _: found)


@pytest.fixture
def asked(monkeypatch):
    asked = []

    async def fake(scenario, streams, *, seed, folder):
        asked.append((scenario.allocation, streams, seed))
        if scenario.allocation == "raid0":
            raise LabError("the server did not start")
        return RealRun(make_result([[0.5]] if streams > 50 else [[]]), 0.001, 0.002)

    monkeypatch.setattr(confirming, "run_real", fake)
    monkeypatch.setattr(confirming, "stay_in_memory", lambda: True)
    monkeypatch.setattr("experiments.arrays.trials._sustained", lambda scenario, seed: 50)
    return asked


@pytest.fixture
def notes():
    return Console(file=io.StringIO())


def test_what_was_confirmed_is_not_run_again(tmp_path, asked, notes):
    for _ in range(2):
        told = confirm(only("4.2", "rda"), tmp_path, seeds=2, notes=notes)
    assert asked == [("rda", 48, 1), ("rda", 52, 1), ("rda", 48, 2), ("rda", 52, 2)]
    assert (told["held_below"], told["starved_above"]) == (2, 2)
    assert json.loads((tmp_path / "4.2-real.json").read_text()) == told
    assert "2 of 4: rda, 52 streams" in notes.file.getvalue()


@pytest.mark.slow
def test_runs_of_so_many_streams_stand_beside_the_simulators(tmp_path, asked, notes):
    figure = only("sick", "half-rda-0.62", "half-rda-0.90")
    told = confirm(figure, tmp_path, seeds=1, jobs=2, notes=notes)
    assert asked == [("rda", 50, 1), ("rda", 72, 1)]
    light, heavy = told["runs"]
    assert (light["incidents"], light["simulated"]["incidents"]) == (0, 0)
    assert (heavy["incidents"], heavy["load"]) == (1, "0.90")
    assert heavy["simulated"]["incidents"] > 0
    assert (tmp_path / "sick-real.png").read_bytes().startswith(b"\x89PNG")
    assert {claim["reproduced"] for claim in told["claims"]} == {None}


def test_a_run_that_failed_does_not_end_the_others(tmp_path, asked, notes):
    figure = only("4.2", "raid0", "random")
    with pytest.raises(LabError, match="2 of 4 runs failed: the server did not start"):
        confirm(figure, tmp_path, seeds=1, notes=notes)
    assert len(asked) == 4
    told = json.loads((tmp_path / "4.2-real.json").read_text())
    assert [row["cell"] for row in told["runs"]] == ["random", "random"]
    with pytest.raises(LabError, match="2 of 2 runs failed"):
        confirm(figure, tmp_path, seeds=1, notes=notes)


def test_a_run_on_a_machine_that_was_too_busy_is_told_and_made_again(tmp_path, monkeypatch, notes):
    late = [0.5, 0.01, 0.01]

    async def fake(scenario, streams, *, seed, folder):
        return RealRun(make_result([[]]), late.pop(0), 0.9)

    monkeypatch.setattr(confirming, "run_real", fake)
    monkeypatch.setattr(confirming, "stay_in_memory", lambda: True)
    monkeypatch.setattr("experiments.arrays.trials._sustained", lambda scenario, seed: 50)
    for disturbed in (1, 0):
        told = confirm(only("4.2", "rda"), tmp_path, seeds=1, notes=notes)
        assert told["disturbed"] == disturbed
    assert late == []


def test_runs_keep_their_stores_in_memory_where_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(confirming, "MEMORY_FOLDER", tmp_path)
    monkeypatch.setattr(confirming, "free_bytes", lambda _: 10 << 30)
    assert confirming._scratch(tmp_path / "out", 1) == tmp_path
    assert confirming._scratch(tmp_path / "out", 3) == tmp_path / "out" / "real-runs"


def test_a_figure_that_has_no_real_runs_is_refused():
    check_array_options("4.4", "real", (), {})
    with pytest.raises(ScenarioError, match=r"these have --engine real: 4\.2, 4\.3"):
        check_array_options("3.2", "real", (), {})
