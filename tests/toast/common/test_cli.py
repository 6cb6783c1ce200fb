"""What every command line shares: one clear line, the right exit code, never a traceback."""

import json
import os
import subprocess
import sys

import click
import pytest

from toast.common.cli import RATE, SECONDS, SIZE, print_json, run_cli
from toast.common.errors import ToastError, UsageError


@click.group()
def tool():
    """A tool."""


@tool.command()
@click.option("--rate", type=RATE, default="1kB/s")
@click.option("--size", type=SIZE, default=5)
@click.option("--time", "seconds", type=SECONDS, default=1.5)
@click.option("--code", type=int, default=None)
def good(rate, size, seconds, code):
    click.echo(f"{rate} {size} {seconds}")
    return code


FAILURES = {
    "toast-error": ToastError("the disk\n is  full"),
    "usage-error": UsageError("no such film"),
    "abort": click.Abort(),
    "interrupt": KeyboardInterrupt(),
    "click-error": click.ClickException("not like that"),
    "exit": click.exceptions.Exit(7),
    "file-error": click.FileError("f.torrent", "unreadable"),
}


@tool.command()
@click.argument("name", type=click.Choice(sorted(FAILURES)))
def bad(name):
    raise FAILURES[name]


@tool.command()
def broken():
    raise RuntimeError("a bug")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the tool as a person does: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tool", *arguments])
        with pytest.raises(SystemExit) as stop:
            run_cli(tool)
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


def test_success_is_zero(run):
    assert run("good") == (0, "1000.0 5 1.5\n", "")


@pytest.mark.parametrize("code", [0, 1, 130])
def test_a_command_may_return_its_exit_code(run, code):
    assert run("good", "--code", str(code))[0] == code


@pytest.mark.parametrize(
    "case",
    [
        ("toast-error", 1, "tool: the disk is full\n"),
        ("usage-error", 2, "tool: no such film\n"),
        ("abort", 130, "tool: interrupted\n"),
        ("interrupt", 130, "tool: interrupted\n"),
        ("click-error", 1, "tool: not like that\n"),
        ("exit", 7, ""),
        ("file-error", 1, "tool: Could not open file 'f.torrent': unreadable\n"),
    ],
)
def test_every_foreseen_failure_is_one_line_with_its_exit_code(run, case):
    name, code, line = case
    found, out, error = run("bad", name)
    assert (found, out) == (code, "")
    # click ends the line under a ^C that a terminal has shown
    assert error.lstrip("\n") == line


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tool", "broken"])
    with pytest.raises(RuntimeError, match="a bug"):
        run_cli(tool)


@pytest.mark.parametrize(
    "case",
    [
        (["good", "--rate", "5"], "is not a rate"),
        (["good", "--rate", "-5Mbps"], "is not a rate"),
        (["good", "--rate", "fast"], "is not a rate"),
        (["good", "--size", "much"], "is not a size"),
        (["good", "--size", "1e9"], "is not a size"),
        (["good", "--time", "soon"], "is not a duration"),
        (["good", "--time", "nan"], "is not a duration"),
        (["good", "--unknown"], "No such option"),
        (["nothing"], "No such command"),
        (["good", "extra"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_is_the_usage_and_one_line(run, case):
    arguments, words = case
    code, out, error = run(*arguments)
    usage, *rest = error.splitlines()
    assert (code, out) == (2, "")
    assert usage.startswith("Usage: ")
    (line,) = rest
    assert line.startswith("tool: ")
    assert words in line


@pytest.mark.parametrize(
    "case",
    [
        (RATE, "2Mbps", 250_000.0),
        (RATE, "250kB/s", 250_000.0),
        (SIZE, "1MiB", 1048576),
        (SECONDS, "1:30", 90.0),
        (RATE, 5, 5),
        (SECONDS, 2.5, 2.5),
    ],
)
def test_units_become_bytes_and_seconds_and_defaults_stay_as_they_are(case):
    kind, given, wanted = case
    assert kind.convert(given, None, None) == wanted


def test_help_is_zero(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "Usage" in out


def test_json_is_one_line_that_can_be_read_back(capsys):
    value = {"b": 1, "a": [1.5, None, "ä\n"]}
    print_json(value)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == value
    assert list(json.loads(out)) == ["b", "a"]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_that_no_other_program_could_read_is_refused(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"rate": number})


@pytest.mark.slow
def test_a_reader_that_went_away_is_no_traceback():
    """`tool | head -1`."""
    program = (
        "import click\n"
        "from toast.common.cli import print_json, run_cli\n"
        "@click.command()\n"
        "def tool():\n"
        "    while True:\n"
        "        print_json(1)\n"
        "run_cli(tool)\n"
    )
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert os.read(reading, 2) == b"1\n"
    os.close(reading)
    _, error = process.communicate(timeout=20)
    assert process.returncode != 0
    assert error == ""
