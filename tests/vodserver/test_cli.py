"""The program, as a person and as a program run it."""

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from tests.vodserver.conftest import make_empty
from vodserver.cli import cli
from vodserver.settings import ServeSettings


def invoke(*arguments):
    """Run a command in this process; the errors are left to see."""
    return CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=True)


@pytest.mark.parametrize("command", [(), *((name,) for name in cli.commands)])
def test_help_has_an_example(command):
    result = invoke(*command, "--help")

    assert result.exit_code == 0
    assert "Example:" in result.output
    assert "vodserver " in result.output.split("Example:")[1]


def test_without_options_the_server_has_the_settings_defaults():
    options = cli.commands["serve"].make_context("serve", []).params
    del options["store"], options["as_json"]

    assert dataclasses.replace(ServeSettings(port=1, host="x", seed=False), **options) == (
        ServeSettings()
    )


def test_init_add_list(tmp_path, clock_film):
    store = ("--store", tmp_path / "s")
    disks = [flag for n in range(3) for flag in ("--disk", tmp_path / f"d{n}")]

    assert invoke("init", *store, *disks).output == (
        f"made a store in {tmp_path / 's'} over 3 disks\n"
    )
    assert "the store is empty" in invoke("list", *store).output
    assert invoke("list", *store, "--json").output == "[]\n"

    added = invoke("add", *store, clock_film, "--name", "A day in May")
    assert added.exit_code == 0, added.output
    assert added.output.startswith("added a-day-in-may: ")
    assert ", 0:31, " in added.output

    listed = invoke("list", *store).output
    assert [line.split()[0] for line in listed.splitlines()] == ["id", "a-day-in-may"]
    assert "A day in May" in listed
    (described,) = json.loads(invoke("list", *store, "--json").output)
    assert described["sha256"] == hashlib.sha256(clock_film.read_bytes()).hexdigest()
    assert described["bytes"] == clock_film.stat().st_size
    assert described["info_hash"] in listed


def test_init_and_add_as_json_are_one_line_each(tmp_path, clock_film):
    store = ("--store", tmp_path / "s")

    made = invoke("init", *store, "--disk", tmp_path / "a", "--disk", tmp_path / "b", "--json")
    added = invoke("add", *store, clock_film, "--json")

    assert made.output.count("\n") == added.output.count("\n") == 1
    assert json.loads(made.output)["event"] == "created"
    assert [disk["number"] for disk in json.loads(made.output)["disks"]] == [0, 1]
    assert json.loads(added.output)["event"] == "added"
    assert json.loads(added.output)["id"] == "clock"


def test_the_store_may_come_from_the_environment(tmp_path):
    store = make_empty(tmp_path)

    result = CliRunner().invoke(cli, ["list"], env={"VODSERVER_STORE": str(store)})

    assert "the store is empty" in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        (["list"], 2, "there is no store in"),
        (["add", "none.mp4"], 2, "there is no store in"),
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


@contextlib.contextmanager
def server(store, *arguments):
    """The real program, serving; gives it and the line that says so."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "vodserver.cli", "serve", "--store", str(store)),
            *("--port", "0", "--json", *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seed", ["--seed", "--no-seed"])
def test_serve_says_where_it_listens_and_stops_cleanly(home, stop, seed):
    with server(home.path, seed) as (process, line):
        assert line["event"] == "listening"
        assert (line["seed_port"] is None) == (seed == "--no-seed")
        assert line["titles"] == 1
        with urllib.request.urlopen(f"{line['url']}/titles/clock/content") as answer:
            assert hashlib.sha256(answer.read()).hexdigest() == home.title.sha256

        process.send_signal(stop)
        out, err = process.communicate(timeout=15)

    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
def test_a_client_in_the_midst_of_a_film_does_not_hold_up_the_stop(home):
    with server(home.path) as (process, line):
        port = int(line["url"].rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /titles/clock/content HTTP/1.1\r\nHost: x\r\n\r\n")
            client.recv(100)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=15)

    assert (process.returncode, err) == (0, "")


@pytest.mark.slow
def test_a_killed_server_comes_back_on_its_ports(home):
    """SIGKILL with a viewer connected; the next one has store, HTTP port and seed port at once."""
    with server(home.path) as (process, line):
        port = line["url"].rsplit(":", 1)[1]
        with socket.create_connection(("127.0.0.1", int(port))) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            client.recv(100)
            process.kill()
            process.wait()
    options = ("--port", port, "--seed-port", str(line["seed_port"]))
    with server(home.path, *options) as (process, again):
        assert (again["url"], again["seed_port"]) == (line["url"], line["seed_port"])
        with urllib.request.urlopen(f"{again['url']}/titles/clock/content") as answer:
            assert hashlib.sha256(answer.read()).hexdigest() == home.title.sha256


@pytest.mark.slow
def test_while_a_store_is_served_it_can_be_listed_but_not_changed(home, run_vodserver, small_film):
    with server(home.path, "--no-seed") as (process, _):
        listed = run_vodserver("list", "--store", home.path, "--json")
        code, out, err = run_vodserver("add", "--store", home.path, small_film)

        assert [title["id"] for title in json.loads(listed[1])] == ["clock"]
        assert (code, out) == (1, "")
        assert f"is in use by process {process.pid}" in err


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_an_add_that_is_stopped_cleans_up(tmp_path, small_film, stop):
    """The signal comes while the first extent is opened to be written."""
    store = make_empty(tmp_path)
    program = (
        "import os, signal, sys\n"
        "sent = []\n"
        "def hook(event, arguments):\n"
        "    if event == 'open' and '/extents/' in str(arguments[0]) and not sent:\n"
        "        sent.append(event)\n"
        f"        os.kill(os.getpid(), {int(stop)})\n"
        "sys.addaudithook(hook)\n"
        "sys.argv = ['vodserver', *sys.argv[1:]]\n"
        "from vodserver.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "add", "--store", str(store), str(small_film)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
    )

    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "vodserver: interrupted"
    assert not list(tmp_path.glob("disk*/extents/*"))
    assert invoke("list", "--store", store, "--json").output == "[]\n"
