"""The swarm laboratory's commands: what they print, keep and refuse."""

import json
import sys

import pytest
from click.testing import CliRunner

from experiments import swarm_cli
from experiments.cli import cli, main
from experiments.errors import LabError
from experiments.figures.catalog import KNOWN
from experiments.figures.engines import create_engine
from experiments.figures.jobs import run_here
from tests.experiments.figures.fake import make_fake


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, in which engines make up their figures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(swarm_cli, "create_engine", make_fake)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_a_swarm_of_a_scale(here):
    result = run("swarm", "--scale", "quick", "--set", "picker=beta", "--out", "out/beta.json")
    assert "offload   74." in result.stdout
    assert "left, 2 of 20 came" in result.stderr
    kept = json.loads((here / "out/beta.json").read_text())
    assert kept["scenario"]["picker"] == "beta"
    assert "simulated in plain Python: there is no build of these sources" in result.stderr


def test_simulations_are_compiled_if_that_was_done(here, monkeypatch):
    used = []

    def in_processes(make_engine, most, variables):
        used.append((most, variables))
        return run_here(make_engine)

    monkeypatch.setattr(swarm_cli, "run_in_processes", in_processes)
    monkeypatch.setattr(swarm_cli, "variables", lambda _: {"BUILD": "there"})
    run("swarm", "--scale", "quick", "--json")
    run("sweep", "--scale", "quick", "--vary", "picker=beta", "--jobs", 3, "--json")
    assert used == [(1, {"BUILD": "there"}), (3, {"BUILD": "there"})]


def test_a_swarm_of_a_file_as_json(here):
    (here / "small.toml").write_text("viewers = 2\n[film]\nduration_seconds = 20\n")
    result = run("swarm", "small.toml", "--json", "--set", "random_seed=4")
    told = json.loads(result.stdout)
    assert told["viewers"] == 2
    assert told["scenario"]["name"] == "small"
    assert told["scenario"]["random_seed"] == 4
    assert result.stderr == ""


@pytest.mark.slow
def test_a_figure_is_made_kept_and_resumed(here):
    arguments = ("figure", "5.7", "--scale", "quick", "--seeds", 2)
    first = run(*arguments, "--jobs", 2)
    assert "16 runs to make, 0 there" in first.stderr
    assert "16 of 16" in first.stderr
    assert "tit-for-tat beats the seed choker" in first.stdout
    assert (here / "run/swarms/figure-5.7-sim-quick.png").exists()
    assert len(list((here / "run/swarms/5.7").iterdir())) == 16
    again = run(*arguments, "--json")
    assert again.stderr == ""
    (told,) = json.loads(again.stdout)
    assert told["figure"] == "5.7"
    assert len(told["cells"]) == 8


@pytest.mark.slow
def test_seeds_are_counted_from_the_scenarios_own_on(here):
    how = (
        "--scale",
        "quick",
        "--set",
        "viewers=2",
        "--set",
        "random_seed=4",
        "--jobs",
        1,
        "--json",
    )
    (cell,) = json.loads(run("sweep", "--vary", "picker=hybrid", "--seeds", 2, *how).stdout)
    assert cell["seeds"] == [4, 5]
    (figure,) = json.loads(run("figure", "5.7", "--seeds", 1, *how).stdout)
    assert {seed for each in figure["cells"] for seed in each["seeds"]} == {4}


@pytest.mark.slow
def test_a_sweep_its_agreement_and_the_page(here, monkeypatch):
    arguments = ("sweep", "--scale", "quick", "--set", "viewers=2", "--vary", "picker=hybrid,beta")
    result = run(*arguments, "--jobs", 1)
    assert "picker-beta  " in result.stdout
    told = json.loads(run(*arguments, "--json", "--engine", "real").stdout)
    assert [cell["cell"] for cell in told] == ["picker-hybrid", "picker-beta"]
    assert len(list((here / "run/swarms/sweep-quick").iterdir())) == 4

    agreement = run("agreement").stdout
    assert "same ranking: hybrid > beta; real: hybrid > beta" in agreement
    assert json.loads(run("agreement", "--json").stdout)["worst_difference"] == 0

    result = run("report", "--out", "page.html")
    assert "page.html: " in result.stdout
    assert "sweep-quick (real, quick)" in (here / "page.html").read_text()
    told = json.loads(run("report", "run/swarms", "--json").stdout)
    assert told["bytes"] == (here / "report.html").stat().st_size


def fail(monkeypatch, capsys, *arguments):
    """Run as a person does; returns exit code and standard error."""
    monkeypatch.setattr(sys, "argv", ["toast-lab", *(str(argument) for argument in arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    "case",
    [
        (["swarm"], 2, "give either a file or --scale source|compressed|quick"),
        (["swarm", "x.toml", "--scale", "quick"], 2, "give either"),
        (["swarm", "x.toml"], 2, "x.toml cannot be read"),
        (["swarm", "--scale", "huge"], 2, "'source', 'compressed', 'quick'"),
        (["swarm", "--scale", "quick", "--engine", "steam"], 2, "'sim', 'real'"),
        (["swarm", "--scale", "quick", "--set", "viewer=3"], 2, "there are name, film, viewers"),
        (["swarm", "--scale", "quick", "--set", "viewers=0"], 2, "viewers is 0"),
        (["swarm", "--scale", "quick", "--set", "name=fails"], 1, "tracker did not start"),
        (["swarm", "--scale", "quick", "--set", "name=cannot"], 2, "latency is nothing for this"),
        (["swarm", "--scale", "quick", "--out", "/proc/x"], 1, "/proc/x cannot be written"),
        (["figure", "5.2"], 2, f"choose {', '.join(KNOWN)} or all; of disk arrays 3.2, "),
        (["figure", "nginx"], 2, "add --engine real"),
        (["figure", "5.3", "--scale", "huge"], 2, "'source', 'compressed', 'quick'"),
        (["figure", "5.3", "--set", "colour=red"], 2, "colour is no field"),
        (["figure", "5.3", "--seeds", "0"], 2, "range"),
        (["figure", "5.3", "--scale", "quick", "--seeds", 1, "--dask", "x"], 1, "lab-dask"),
        (["sweep", "--scale", "quick"], 2, "--vary"),
        (["sweep", "--scale", "quick", "--vary", "colour=red"], 2, "colour is no field"),
        (["agreement"], 1, "no cell in run/swarms has results of both engines"),
        (["report"], 2, "run/swarms"),
        (["report", "."], 1, "there is no result in ."),
    ],
)
def test_failures_are_one_clear_line(here, monkeypatch, capsys, case):
    arguments, code, words = case
    monkeypatch.setitem(sys.modules, "distributed", None)
    found, error = fail(monkeypatch, capsys, *arguments)
    assert found == code
    assert words in error
    assert "Traceback" not in error


def test_engines_are_known_by_name():
    with pytest.raises(LabError, match="no engine 'steam': choose sim or real"):
        create_engine("steam")
