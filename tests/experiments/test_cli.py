"""The laboratory's command line: what it prints, and how it fails."""

import json
import sys

import pytest
from click.testing import CliRunner

from experiments.cli import cli, main
from experiments.demo import DemoSettings
from toast.common.units import parse_rate


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def fail(monkeypatch, capsys, *arguments):
    """Run as a person does; returns exit code and standard error."""
    monkeypatch.setattr(sys, "argv", ["toast-lab", *(str(argument) for argument in arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


def test_bound_prints_one_number():
    result = run("bound", "--viewers", 8)
    assert result.exit_code == 0
    assert float(result.output) == pytest.approx(0.871, abs=0.001)


def test_bound_as_json_with_everything_set():
    arguments = "--viewers 4 --spacing 10 --duration 60 --rate 2Mbps --upload 1Mbps"
    more = "--download 4Mbps --behaviour seeding --end 2min --pieces 60 --json"
    result = run("bound", *arguments.split(), *more.split())
    assert 0.3 < json.loads(result.output)["bound"] < 0.75


def test_film_is_made_and_described(tmp_path):
    out = tmp_path / "film.mp4"
    size = ("--width", 160, "--height", 90, "--rate", "500kbps")
    result = run("film", out, "--duration", 1, *size, "--no-faststart", "--json")
    assert result.exit_code == 0
    told = json.loads(result.output)
    assert told["bytes"] == out.stat().st_size
    assert (told["faststart"], told["bit_rate"]) == (False, parse_rate("500kbps"))


@pytest.mark.slow
def test_decode_of_a_file_in_real_time(tmp_path):
    out = tmp_path / "film.mp4"
    run("film", out, "--duration", 1, "--width", 160, "--height", 90, "--rate", "500kbps")
    result = run("decode", out, "--json")
    told = json.loads(result.output)
    assert (told["event"], told["frames"], told["errors"]) == ("decoded", 25, 0)


@pytest.mark.parametrize(
    "case",
    [
        (["film", "x.mp4", "--width", "161"], 1, "even"),
        (["film", "x.mp4", "--rate", "1"], 2, "is not a rate"),
        (["decode", "nowhere.mp4"], 1, "cannot be opened"),
        (["demo", "--film", "nowhere.mp4"], 2, "does not exist"),
        (["demo", "--viewers", "0"], 2, "range"),
        (["demo", "--picker", "psychic"], 2, "psychic"),
        (["bound", "--upload", "fast"], 2, "is not a rate"),
        (["bound", "--end", "1000h", "--behaviour", "seeding", "--pieces", "20000"], 2, "steps"),
    ],
)
def test_failures_are_one_clear_line(empty, monkeypatch, capsys, case):
    arguments, code, words = case
    found, error = fail(monkeypatch, capsys, *arguments)
    assert found == code
    assert words in error
    assert "Traceback" not in error
    assert list(empty.iterdir()) == []


def test_a_film_that_is_none_is_refused_by_the_demonstration(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.mp4").write_text("no film")
    code, error = fail(monkeypatch, capsys, "demo", "--film", "notes.mp4")
    assert code == 2
    assert "notes.mp4" in error
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.mp4"]


@pytest.mark.parametrize("command", ["demo", "film", "bound", "decode"])
def test_every_command_explains_itself_with_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"toast-lab {command}" in result.output.split("Example:")[1]


def test_defaults_of_the_demonstration_are_those_of_its_settings():
    defaults = {option.name: option.default for option in cli.commands["demo"].params}
    settings = DemoSettings()
    for name in ("viewers", "spacing_seconds", "picker", "behaviour", "seed", "folder"):
        assert defaults[name] == getattr(settings, name)
