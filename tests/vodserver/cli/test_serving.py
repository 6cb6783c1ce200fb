"""The command that serves: what it says, and how it ends."""

import contextlib
import dataclasses
import hashlib
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from vodserver.cli import cli
from vodserver.settings import ServeSettings


def test_without_options_the_server_has_the_settings_defaults():
    options = cli.commands["serve"].make_context("serve", []).params
    del options["store"], options["as_json"]

    assert dataclasses.replace(ServeSettings(port=1, host="x", seed=False), **options) == (
        ServeSettings()
    )


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
def test_while_a_store_is_served_titles_come_and_go(home, run_vodserver, small_film):
    """The commands reach the server that has the store; what it serves changes at once."""
    store = ("--store", home.path)
    with server(home.path, "--no-seed") as (_, line):
        listed = run_vodserver("list", *store, "--json")
        code, out, err = run_vodserver("add", *store, small_film)
        with urllib.request.urlopen(f"{line['url']}/titles/small/content") as answer:
            assert answer.read() == small_film.read_bytes()
        checked = run_vodserver("fsck", *store, "--deep", "--json")
        removed = run_vodserver("remove", *store, "clock")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{line['url']}/titles/clock/content")

    assert [title["id"] for title in json.loads(listed[1])] == ["clock"]
    assert (code, err) == (0, "")
    assert out.startswith("added small: ")
    assert json.loads(checked[1])["titles"] == 2
    assert (checked[0], removed[0]) == (0, 0)
    assert not list(home.path.parent.glob(f"disk*/extents/{home.title.folder}"))


# -- signed links, reloading, TLS ------------------------------------------------------------------


@pytest.fixture
def secrets(tmp_path):
    path = tmp_path / "secrets"
    path.write_text("an old secret of some length\n")
    path.chmod(0o600)
    return path


@pytest.mark.slow
def test_a_link_opens_the_film_and_a_hangup_brings_new_secrets_and_a_new_log(
    home, secrets, tmp_path, run_vodserver
):
    log = tmp_path / "access.log"
    options = ("--require-signed", "--link-secrets", str(secrets), "--access-log", str(log))

    def link(base, *more):
        words = ("--link-secrets", secrets, "--public-url", base, "--part", "content", *more)
        code, out, err = run_vodserver("link", "clock", "--store", home.path, *words)
        assert (code, err) == (0, "")
        return out.strip()

    def status(url):
        try:
            with urllib.request.urlopen(url) as answer:
                answer.read()
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with server(home.path, "--no-seed", *options) as (process, line):
        base = line["url"]
        assert status(f"{base}/titles/clock/content") == 403
        assert status(link(base)) == 200
        assert status(link(base, "--net", "192.0.2.0/24")) == 403
        assert status(link(base, "--expires", "0s").replace("expires=1", "expires=2")) == 403
        log.rename(tmp_path / "access.log.1")
        secrets.write_text("a new secret of some length\nan old secret of some length\n")
        fresh = link(base)
        assert status(fresh) == 403
        process.send_signal(signal.SIGHUP)
        with contextlib.suppress(TimeoutError):
            for _ in range(200):
                if status(fresh) == 200:
                    break
        assert status(fresh) == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=15)

    assert (process.returncode, err) == (0, "")
    assert '" 403 ' in (tmp_path / "access.log.1").read_text()
    assert '" 200 ' in log.read_text()
    assert "sig=-" in log.read_text()  # who reads the log has no links
    assert fresh.split("sig=")[1] not in log.read_text()


def test_a_link_as_json_says_when_it_ends(home, secrets, run_vodserver):
    words = ("clock", "--store", home.path, "--link-secrets", secrets, "--expires", "90min")
    code, out, _ = run_vodserver("link", *words, "--json")

    told = json.loads(out)
    assert code == 0
    assert told["event"] == "link"
    assert told["url"].startswith("http://127.0.0.1:8080/titles/clock/torrent?expires=")
    assert f"expires={told['expires']}&sig=" in told["url"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("link", "none", "--link-secrets", "{secrets}"), "there is no title 'none'"),
        (("link", "clock", "--link-secrets", "no-file"), "cannot read the secrets"),
        (("link", "clock", "--link-secrets", "{secrets}", "--net", "here"), "is no network"),
        (("link", "clock", "--link-secrets", "{secrets}", "--expires", "x"), "not a duration"),
        (("serve", "--require-signed"), "--link-secrets"),
        (("serve", "--tls-cert", "no-file"), "give --tls-cert and --tls-key"),
        (("serve", "--tls-cert", "no-file", "--tls-key", "no-file"), "cannot read the TLS"),
        (("serve", "--access-log", "no/such/folder"), "cannot write the access log"),
        (("serve", "--egress", "5"), "'5' is not a rate"),
    ],
)
def test_what_cannot_be_signed_or_served_is_one_clear_line(
    pristine, secrets, run_vodserver, words, message
):
    filled = [word.format(secrets=secrets) for word in words]
    if words[0] == "serve":
        filled += ["--port", "0", "--no-seed"]

    code, out, err = run_vodserver(*filled, "--store", pristine.path)

    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
