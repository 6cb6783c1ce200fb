import json
import signal
import sys

import pytest
from click.testing import CliRunner

from netem import cli
from netem.backends import BACKENDS, BackendReport, TunBackend
from netem.errors import NetemError

TOPOLOGY = """
name = "mixed"
[classes.near]
delay = "0ms"
[classes.far]
delay = "5ms"
jitter = "1ms"
loss = 0.02
rate = "2Mbps"
[[hosts]]
name = "viewer"
class = "far"
count = 2
"""


@pytest.fixture
def topology_file(tmp_path):
    file = tmp_path / "mixed.toml"
    file.write_text(TOPOLOGY)
    return file


@pytest.fixture
def only_tun(monkeypatch, tmp_path):
    """A machine on which nothing works: the real TUN probe on a device that is not there."""
    monkeypatch.setattr(cli, "BACKENDS", (TunBackend(device=str(tmp_path / "tun")),))


@pytest.fixture
def run_main(monkeypatch, capsys):
    """Runs the whole program: exit code and standard error."""
    # `main` decides what SIGTERM does to its process; here that is the test run.
    before = signal.getsignal(signal.SIGTERM)

    def run_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["toast-netem", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, capsys.readouterr().err

    yield run_main
    signal.signal(signal.SIGTERM, before)


def run(*arguments):
    return CliRunner(env={"COLUMNS": "250"}).invoke(cli._netem, [str(each) for each in arguments])


def test_show_gives_classes_and_round_trips(topology_file):
    shown = run("show", topology_file)
    assert shown.exit_code == 0
    assert "2 Mb/s" in shown.output
    assert "5 ± 1 ms, 2 % lost" in shown.output
    assert "10 ± 2 ms, 3.96 % lost" in shown.output


def test_show_json_is_in_base_units(topology_file):
    shown = json.loads(run("show", topology_file, "--json").output)
    assert shown["classes"][1]["rate"] == 250_000.0
    assert [host["name"] for host in shown["hosts"]] == ["viewer-1", "viewer-2"]
    assert shown["paths"][3] == {
        "from": "far",
        "to": "far",
        "round_trip_seconds": 0.01,
        "jitter_seconds": 0.002,
        "loss": pytest.approx(0.0396),
        "rate": 250_000.0,
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name = 3", "classes is missing"),
        (b"\xff\xfe", "not a text file"),
        (b"#" * 1_100_000, "larger than 1 MiB"),
        (None, "No such file"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(content, said, tmp_path, run_main):
    file = tmp_path / "bad.toml"
    if content is not None:
        file.write_bytes(content)
    code, complaint = run_main("show", file)
    assert code == 2
    assert said in complaint
    assert complaint.count("\n") == 1


def test_doctor_says_why_nothing_works(only_tun):
    checked = run("doctor", "--json")
    assert isinstance(checked.exception, NetemError)
    report = json.loads(checked.stdout)
    assert report["backends"]["tun"]["works"] is False
    assert "no TUN driver" in report["backends"]["tun"]["reason"]
    assert report["machine"]["kernel"].startswith("Linux")


def test_doctor_shows_people_a_table(only_tun):
    checked = run("doctor")
    assert "TCP congestion control" in checked.stdout
    assert "no TUN driver" in checked.stdout


def test_every_backend_has_a_name_and_a_description_of_its_own():
    assert [backend.name for backend in BACKENDS] == ["kernel", "tun", "uml"]
    assert len({backend.description for backend in BACKENDS}) == len(BACKENDS)


def test_facts_of_a_backend_reach_the_json(monkeypatch):
    class Works(TunBackend):
        def probe(self):
            return BackendReport("tun", works=True, reason="tried", facts={"delay_seconds": 0.5})

    monkeypatch.setattr(cli, "BACKENDS", (Works(),))
    checked = run("doctor", "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["backends"]["tun"]["delay_seconds"] == 0.5


@pytest.mark.parametrize("command", [[], ["doctor"], ["guest"], ["show"]])
def test_help_has_an_example(command):
    shown = run(*command, "--help")
    assert shown.exit_code == 0
    assert "Example:\n    toast-netem" in shown.output


def test_a_guest_needs_some_memory(run_main):
    code, complaint = run_main("guest", "--memory", "1MB", "true")
    assert code == 2
    assert "--memory must be at least 128 MB" in complaint


def test_without_a_guest_its_package_is_named(run_main, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    code, complaint = run_main("guest", "true")
    assert code == 1
    assert "Debian has it in user-mode-linux" in complaint
