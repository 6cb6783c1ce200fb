"""The comparison with nginx: what is run, what is not run again, and what is made of it."""

import io
import json

import pytest
from rich.console import Console

from experiments.arrays import against, against_figure, mounted
from experiments.arrays.against import CELLS, FIXED_STREAMS, SICK, Cell, Trials, sustained_in
from experiments.arrays.nginx import BEST, WAYS, nginx_command
from experiments.arrays.result import conclude
from experiments.arrays.rivals import RIVALS
from experiments.errors import LabError, ScenarioError

CORES = {"server_cores": 0.1, "client_cores": 0.05}


def limit(rival, demand):
    """What the servers of this test sustain."""
    if rival.way is None:
        return 70 if demand == SICK else 81
    return 37 if demand in {SICK, "Zipf 1.0"} else 60


@pytest.fixture
def asked(monkeypatch):
    """Runs that were asked for; none takes place."""
    runs = []

    async def play(rival, scenario, library, demand, streams, **how):
        runs.append((rival, demand, streams, how["seed"], how["to_the_end"]))
        result = conclude(
            incidents=[[0.5]] * (streams > limit(rival, demand)) + [[]],
            responses=[0.1],
            refused=0,
            lost=0,
            reads=1,
            busy_share=None,
            hit_share=None,
            model_streams=81.0,
        )
        return {"load_before": 1.0} | result.to_dict() | {"streams": streams} | CORES

    async def pull(rival, scenario, library, streams, **how):
        runs.append((rival, streams))
        return {"streams_worth": 12.0} | CORES

    monkeypatch.setattr(against, "play", play)
    monkeypatch.setattr(against, "pull", pull)
    monkeypatch.setattr(against, "commit", lambda: "abc")
    monkeypatch.setattr(against, "make_library", lambda *_, **__: None)
    return runs


def make(tmp_path):
    notes = Console(file=io.StringIO())
    return against_figure.make_against(tmp_path, seeds=1, jobs=2, notes=notes)


@pytest.mark.slow
def test_all_is_measured_once_and_told(tmp_path, asked, capsys):
    told = make(tmp_path)
    made = len(asked)
    assert len(set(asked)) == made
    sick = {(rival, streams) for rival, demand, streams, _, end in filter(_plays, asked) if end}
    assert sick == {(RIVALS[c.rival], FIXED_STREAMS) for c in CELLS if c.demand == SICK}
    assert make(tmp_path) == told
    assert len(asked) == made
    assert json.loads((tmp_path / "nginx-real.json").read_text()) == told
    assert (tmp_path / "nginx-real.png").stat().st_size > 1000
    streams = {(r["axes"]["rival"], r["axes"]["demand"]): r["streams"] for r in told["cells"]}
    assert len(streams) == len(CELLS)
    assert streams["toast", "uniform"] == 80
    assert streams["film per disk", "Zipf 1.0"] == 36
    verdicts = {claim["claim"]: claim["reproduced"] for claim in told["claims"]}
    assert verdicts["Zipf 1.0: at least 2 x nginx, film per disk (ours)"]
    assert not verdicts["one disk +80 %: at least 2 x nginx, film per disk (ours)"]
    assert {row["way"] for row in told["ways"]} == set(against.WAY_RIVALS)
    against_figure.show_against(told)
    shown = capsys.readouterr().out
    assert "film per disk: 2.22" not in shown
    assert "(ours): 2.22" in shown


def _plays(run):
    return len(run) == 5


@pytest.mark.slow
def test_what_was_interrupted_goes_on(tmp_path, asked, monkeypatch):
    keep, kept = Trials.keep, []

    def fail(trials, row):
        keep(trials, row)
        kept.append(row)
        if len(kept) == 30:
            raise LabError("no room is left")

    monkeypatch.setattr(Trials, "keep", fail)
    with pytest.raises(LabError, match="no room"):
        make(tmp_path)
    monkeypatch.setattr(Trials, "keep", keep)
    path = tmp_path / "nginx-real.runs.jsonl"
    path.write_text(path.read_text() + '{"rival": "toast", "dem')
    told = make(tmp_path)
    assert len(told["cells"]) == len(CELLS)
    again = [run for run in set(asked) if asked.count(run) > 1]
    assert len(again) <= 2  # that were under way


@pytest.mark.slow
def test_a_run_of_something_else_is_none(tmp_path, asked, monkeypatch):
    make(tmp_path)
    made = len(asked)
    monkeypatch.setattr(against, "SCENARIO", against.SCENARIO.with_(hold_seconds=20.0))
    make(tmp_path)
    assert len(asked) == 2 * made


def test_sustained_is_where_more_was_too_much():
    def row(streams, incidents, *, end=False):
        place = {"rival": "toast", "demand": "uniform", "seed": 1}
        return {**place, "streams": streams, "incidents": incidents, "to_the_end": end}

    cell = Cell("toast", "uniform")
    rows = [row(70, 0), row(74, 1), row(72, 0, end=True)]
    assert sustained_in(rows, cell) == {}
    assert sustained_in([*rows, row(72, 0)], cell) == {1: 72}
    assert sustained_in([row(against.MOST_STREAMS, 0)], cell) == {1: against.MOST_STREAMS}
    assert sustained_in([*rows, row(72, 0)], Cell("film per disk", "uniform")) == {}


@pytest.mark.parametrize(
    ("engine", "changes", "how", "words"),
    [
        ("sim", (), {}, "add --engine real"),
        ("real", ("disks=3",), {}, "no --set"),
        ("real", (), {"dask": "x"}, "no --dask"),
    ],
)
def test_options_that_it_does_not_have_are_refused(engine, changes, how, words):
    with pytest.raises(ScenarioError, match=words):
        against_figure.check_against_options(engine, changes, how)
    against_figure.check_against_options("real", (), {"dask": None, "again": False})


@pytest.mark.parametrize("way", WAYS)
def test_nginx_is_told_to_keep_to_its_folder(tmp_path, way, monkeypatch):
    monkeypatch.setattr("experiments.arrays.nginx.find_nginx", lambda: "nginx")
    root = tmp_path / "mount"
    command = nginx_command(WAYS[way], prefix=tmp_path / "n", root=root, host="h", port=1)
    assert command[-2:] == ["-c", str(tmp_path / "n" / "nginx.conf")]
    text = (tmp_path / "n" / "nginx.conf").read_text()
    assert WAYS[way].directives in text
    assert ("thread_pool" in text) == ("aio threads=pool" in text)
    assert "/var" not in text.replace(str(tmp_path), "")
    assert way != BEST or "directio" in text


def test_a_machine_without_the_device_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(mounted, "_DEVICE", str(tmp_path / "fuse"))
    with pytest.raises(LabError, match="fuse is missing: load the kernel's module"):
        mounted.mounted_command(tmp_path / "spec.json")
    (tmp_path / "fuse").touch()
    monkeypatch.setattr(mounted.os, "access", lambda *_: False)
    with pytest.raises(LabError, match="may not be used by this user: run as root"):
        mounted.mounted_command(tmp_path / "spec.json")
