import json
import signal
import subprocess
import sys
import urllib.request

import bencode2
import pytest
from click.testing import CliRunner

from tracker import cli


@pytest.fixture
def start():
    """Starts `toast-tracker serve` as a process; whatever still runs at the end is killed."""
    running = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", "from tracker.cli import main; main()", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_as_a_process_until_a_signal(start, number):
    process = start("--port", "0", "--json", "--interval", "10s")
    listening = json.loads(process.stdout.readline())
    assert listening["event"] == "listening"
    assert listening["announce_url"] == listening["url"] + "/announce"
    assert listening["udp_announce_url"] == listening["announce_url"].replace("http", "udp")
    query = f"?info_hash={'a' * 20}&peer_id={'b' * 20}&port=1"
    with urllib.request.urlopen(listening["announce_url"] + query, timeout=10) as response:
        # A tracker that has just started spreads its clients: a half to the whole.
        assert bencode2.bdecode(response.read())[b"interval"] in range(5, 11)
    process.send_signal(number)
    assert process.communicate(timeout=10) == ("", "")
    assert process.returncode == 0


@pytest.mark.slow
def test_a_program_may_close_the_pipe_after_the_first_line(start):
    process = start("--port", "0", "--json")
    process.stdout.readline()
    process.stdout.close()
    process.terminate()
    assert process.wait(timeout=10) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
def test_people_are_told_the_announce_url_and_a_taken_port(start):
    process = start("--port", "0")
    line = process.stdout.readline()
    assert "announce URL: http://127.0.0.1:" in line
    port = line.partition("127.0.0.1:")[2].partition("/")[0]
    second = start("--port", port)
    _, complaints = second.communicate(timeout=10)
    assert second.returncode == 1
    assert complaints.count("\n") == 1
    assert f"cannot listen on 127.0.0.1:{port}" in complaints
    process.terminate()
    goodbye, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert goodbye.startswith("stopped after 0 announces")


@pytest.mark.parametrize("command", [[], ["serve"]])
def test_help_has_an_example(command):
    shown = CliRunner().invoke(cli._tracker, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Example:\n    toast-tracker serve" in shown.output


@pytest.mark.parametrize(
    "wrong", [["--port", "70000"], ["--interval", "soon"], ["--interval", "0"], ["--host"]]
)
def test_wrong_options_are_refused(wrong, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["toast-tracker", "serve", *wrong])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_passkeys_are_made_for_names(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 16)
    url = "http://t.example/announce"
    words = ["passkey", "alice", "bob", "--secret", str(secret), "--url", url]
    shown = CliRunner().invoke(cli._tracker, words)
    assert shown.exit_code == 0
    alice, bob = shown.output.splitlines()
    assert alice.startswith(f"{url}?passkey=alice.")
    assert bob.startswith(f"{url}?passkey=bob.")
    bare = CliRunner().invoke(cli._tracker, [*words[:2], *words[3:5], "--json"])
    assert json.loads(bare.output) == {
        "name": "alice",
        "passkey": alice.partition("=")[2],
        "announce_url": None,
    }
