"""What all commands have in common: help with an example, failures in one line."""

import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.vodserver.conftest import make_empty
from vodserver.cli import cli
from vodserver.cli.group import _MODULES


@pytest.mark.parametrize("command", [(), *((name,) for name in cli.commands)])
def test_help_has_an_example(command):
    result = CliRunner().invoke(cli, [*command, "--help"])

    assert result.exit_code == 0
    assert "Example:" in result.output
    assert "vodserver " in result.output.split("Example:")[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        (["list"], 2, "there is no store in"),
        (["add", "none.mp4"], 2, "there is no store in"),
        (["remove", "x"], 2, "there is no store in"),
        (["fsck"], 2, "there is no store in"),
        (["remove", "--store", "{store}", "x"], 2, "there is no title 'x'"),
        (["serve"], 2, "there is no store in"),
        (["init", "--disk", "a"], 2, "needs 2 disks"),
        (["init"], 2, "Missing option '--disk'"),
        (["add", "--store", "{store}", "none.mp4"], 2, "none.mp4 does not exist"),
        (["add", "--store", "{store}", "empty.mp4"], 2, "empty"),
        (["add", "--store", "{store}", "text.mp4"], 2, "text.mp4"),
        (["add", "--store", "{store}", "cut.mp4"], 2, "cut.mp4"),
        (["add", "--store", "{store}", "text.mp4", "--name", "///"], 2, "--name"),
        (["serve", "--store", "{store}", "--port", "{taken}", "--no-seed"], 1, "port {taken}"),
        (["serve", "--store", "{store}", "--port", "0", "--seed-port", "{taken}"], 1, "seed-port"),
        (["serve", "--store", "{store}", "--tracker", "nonsense"], 2, "'nonsense' is not a URL"),
        (["serve", "--store", "{store}", "--public-url", "udp://x"], 2, "'udp://x' is not a URL"),
        (["serve", "--store", "{store}", "--seed-upload", "5"], 2, "'5' is not a rate"),
        (["serve", "--store", "{store}", "--port", "70000"], 2, "70000"),
    ],
)
def test_a_failure_is_one_clear_line_and_an_exit_code(tmp_path, run_vodserver, clock_film, row):
    arguments, code, message = row
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("This is a text about films.\n" * 50)
    (tmp_path / "cut.mp4").write_bytes(clock_film.read_bytes()[:300_000])
    store = make_empty(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values = {"store": store, "taken": taken.getsockname()[1]}
        arguments = [argument.format(**values) for argument in arguments]

        exit_code, out, err = run_vodserver(*arguments)

    lines = [line for line in err.splitlines() if not line.startswith("Usage: ")]
    assert exit_code == code
    assert out == ""
    assert len(lines) == 1, err
    assert lines[0].startswith("vodserver: ")
    assert message.format(**values) in lines[0]
    assert not list(tmp_path.glob("disk*/extents/*"))


def test_a_command_loads_what_it_needs_and_not_the_server():
    """Starting is most of what a short command does."""
    code = (
        "import sys; from vodserver.cli import cli; "
        "[cli.get_command(None, name) for name in ('list', 'add', 'disk', 'status')]; "
        "sys.exit('aiohttp' in sys.modules or 'libtorrent' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_command_is_where_it_is_looked_for():
    assert sorted(cli.commands) == sorted(name for names in _MODULES.values() for name in names)
    assert all(cli.get_command(None, name) is command for name, command in cli.commands.items())
    assert cli.get_command(None, "nothing") is None
