"""`toast watch` and `toast play` as people and scripts meet them."""

import asyncio
import hashlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.toast.origin.server import film_server
from tests.toast.swarm.world import flipped, make_torrent, random_film
from toast.cli import main, toast
from toast.common.timemap import TimeMap
from toast.viewer import ViewerSettings

FILM = random_film(400_000)
HOST = "127.48.0.1"
PROGRAM = Path(sys.executable).parent / "toast"


def torrent(*, seconds=1.0, origins=(), trackers=(), film=FILM):
    timemap = TimeMap.constant(len(film), seconds)
    return make_torrent(
        film, piece_bytes=32 * 1024, timemap=timemap, origins=origins, trackers=trackers
    )


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(home, monkeypatch, capsys):
    """Run the command as a person does, in this process: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["toast", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


class Program:
    """The real program, started from a shell's point of view."""

    def __init__(self, process):
        self._process = process
        self.lines = []

    @classmethod
    async def start(cls, *arguments, folder):
        return cls(
            await asyncio.create_subprocess_exec(
                PROGRAM,
                *map(str, arguments),
                cwd=folder,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        )

    async def event(self, name, *, seconds=15.0):
        """The next JSON line of that kind."""
        async with asyncio.timeout(seconds):
            while line := await self._process.stdout.readline():
                self.lines.append(json.loads(line))
                if self.lines[-1]["event"] == name:
                    return self.lines[-1]
        raise AssertionError(await self._process.stderr.read())

    def send(self, number):
        self._process.send_signal(number)

    async def end(self, *, seconds=15.0):
        """(exit code, rest of stdout, stderr)."""
        async with asyncio.timeout(seconds):
            out, error = await self._process.communicate()
        return self._process.returncode, out.decode(), error.decode()


@pytest.fixture
async def program(tmp_path):
    started = []

    async def start(*arguments):
        started.append(await Program.start(*arguments, folder=tmp_path))
        return started[-1]

    yield start
    for each in started:
        if each._process.returncode is None:
            each._process.kill()
            await each._process.communicate()


@pytest.fixture
async def server():
    async with film_server(FILM, HOST) as running:
        running.latency = 0.02
        yield running


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["watch"], ["play"]])
def test_help_explains_with_an_example(command):
    result = CliRunner().invoke(toast, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.output
    assert "toast play http" in result.output or f"toast {command[0]}" in result.output


def test_every_option_is_explained():
    for command in toast.commands.values():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, option.name


def test_the_defaults_are_those_of_the_settings():
    defaults = {option.name: option.default for option in toast.commands["watch"].params}
    settings = ViewerSettings()
    for name in ("folder", "picker", "neighbours"):
        assert defaults[name] == getattr(settings, name)
    assert defaults["behaviour"] == str(settings.behaviour)
    assert defaults["start"] == settings.start_seconds


@pytest.mark.slow
async def test_the_installed_program_answers(program):
    code, out, error = await (await program("--help")).end()
    assert (code, error) == (0, "")
    assert "watch" in out
    assert "play" in out


# -- failures --------------------------------------------------------------------------------------


def one_line(error, *, usage=False):
    """The one line of a failure; under the usage, if the usage was wrong."""
    assert "Traceback" not in error
    lines = error.strip().splitlines()
    if usage:
        assert lines.pop(0).startswith("Usage: ")
    (line,) = lines
    assert line.startswith("toast: ")
    return line


@pytest.mark.parametrize(
    "case",
    [
        (["watch"], "Missing argument"),
        (["watch", "x", "--upload", "5"], "is not a rate"),
        (["watch", "x", "--upload", "fast"], "is not a rate"),
        (["watch", "x", "--download", "2 elephants"], "is not a rate"),
        (["watch", "x", "--start", "later"], "is not a duration"),
        (["watch", "x", "--picker", "psychic"], "psychic"),
        (["watch", "x", "--neighbours", "nice"], "nice"),
        (["watch", "x", "--behaviour", "leeching"], "leeching"),
        (["watch", "x", "--gateway-port", "70000"], "70000"),
        (["watch", "x", "--random-seed", "pi"], "pi"),
        (["watch", "x", "--folder", "in-the-way"], "in-the-way"),
        (["look", "x"], "No such command"),
        (["watch", "x.torrent", "--random-seed", "-1"], "--random-seed"),
    ],
)
def test_wrong_usage_is_the_usage_and_one_line(run, home, case):
    arguments, words = case
    (home / "in-the-way").write_bytes(b"")
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert words in one_line(error, usage=True)


@pytest.mark.parametrize(
    "case",
    [
        (["film.torrent"], 2, "film.torrent does not exist"),
        (["garbage.torrent"], 2, "garbage.torrent: this is not a .torrent"),
        (["."], 2, "is not a file"),
        (["http://[bad"], 2, "is not the URL"),
        (["nowhere.torrent", "--listen", "nonsense"], 2, "is not an address"),
        (["nowhere.torrent", "--upload", "0Mbps"], 2, "--upload"),
        (["nowhere.torrent", "--in-order-seconds", "5", "--picker", "beta"], 2, "hybrid"),
        (["nowhere.torrent", "--listen", "127.0.0.1:port"], 2, "is not an address"),
        (["nowhere.torrent", "--listen", "127.0.0.1:66000"], 2, "is not an address"),
        (["nowhere.torrent", "--listen", "203.0.113.7"], 1, "cannot listen for peers"),
        (["magnet:?xt=nothing"], 2, "magnet link"),
        (["good.torrent", "--origin", "vod.example"], 2, "is not the URL of a VoD server"),
        (["lonely.torrent"], 1, "neither a VoD server nor a tracker"),
    ],
)
def test_failures_are_one_clear_line(run, home, case):
    arguments, wanted, words = case
    (home / "garbage.torrent").write_bytes(b"garbage")
    (home / "good.torrent").write_bytes(torrent(origins=("http://127.0.0.1:1/film",)))
    (home / "lonely.torrent").write_bytes(torrent())
    before = sorted(home.iterdir())
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1")
    code, out, error = run("watch", *arguments, *listen)
    assert (code, out) == (wanted, "")
    assert words in one_line(error)
    assert sorted(home.iterdir()) == before


def test_an_unreachable_server_is_told_with_its_url(run):
    with socket.socket() as free:
        free.bind((HOST, 0))
        url = f"http://{HOST}:{free.getsockname()[1]}/titles/film"
        code, _, error = run("watch", url, "--listen", "127.0.0.1")
    assert code == 1
    assert f"{url} cannot be reached" in one_line(error)


def test_a_taken_port_is_told(run):
    with socket.create_server((HOST, 0)) as taken:
        address = f"{HOST}:{taken.getsockname()[1]}"
        code, _, error = run("watch", "nowhere.torrent", "--listen", address)
    assert code == 1
    assert f"cannot listen for peers on {address}" in one_line(error)


def test_another_file_in_the_film_s_place_is_left_alone(run, home):
    (home / "film.torrent").write_bytes(torrent(origins=("http://127.0.0.1:1/film",)))
    (home / "toast-films").mkdir()
    (home / "toast-films" / "film.mp4").write_bytes(FILM + b"more")
    code, _, error = run("watch", "film.torrent", "--listen", HOST)
    assert code == 1
    assert "another file of the same name" in error.splitlines()[-1]
    assert "Traceback" not in error
    assert (home / "toast-films" / "film.mp4").read_bytes() == FILM + b"more"


def test_a_player_that_is_not_there_is_told(run):
    code, _, error = run("play", "film.torrent", "--player", "no-such-player")
    assert code == 2
    assert "there is no player 'no-such-player'" in one_line(error)


@pytest.mark.slow
async def test_the_real_program_fails_in_one_line_too(program):
    code, out, error = await (
        await program("watch", "nowhere.torrent", "--listen", "127.0.0.1")
    ).end()
    assert (code, out) == (2, "")
    assert error == "toast: nowhere.torrent does not exist\n"


# -- viewings --------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_film_is_watched_and_reported_as_json(program, server, tmp_path):
    path = tmp_path / "film.torrent"
    # A piece is due every 330 ms: a pause of a busy machine is no stall.
    path.write_bytes(torrent(seconds=4.0, origins=(server.url,)))
    watching = await program("watch", path, "--json", "--listen", "127.48.0.2")

    report = await watching.event("report")
    code, rest, error = await watching.end()

    assert (code, rest, error) == (0, "", "")
    names = [line["event"] for line in watching.lines]
    assert names[0] == "source"
    assert names.index("source") < names.index("started") < names.index("report")
    assert "progress" in names
    assert names[-1] == "report"
    assert watching.lines[0]["film_bytes"] == report["film_bytes"] == len(FILM)
    assert (report["complete"], report["stalls"]) == (True, 0)
    assert report["sha256"] == hashlib.sha256(FILM).hexdigest()
    assert report["bytes_from_origin"] > len(FILM)
    for name in ("upload_cap", "choice_share", "requested_pieces", "presence_seconds"):
        assert name in report
    assert (tmp_path / "toast-films" / "film.mp4").read_bytes() == FILM


@pytest.mark.slow
async def test_for_people_standard_output_stays_empty(program, server, tmp_path):
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(seconds=0.5, origins=(server.url,)))
    watching = await program("watch", path, "--folder", "here", "--listen", "127.48.0.3")
    code, out, error = await watching.end()
    assert (code, out) == (0, "")
    assert "film.mp4" in error
    assert "complete" in error
    assert (tmp_path / "here" / "film.mp4").read_bytes() == FILM


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_interrupt_still_gives_the_report(program, server, tmp_path, number):
    """SIGTERM is how scripts end a viewing: that is success; Ctrl-C is told as such."""
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(seconds=300.0, origins=(server.url,)))
    watching = await program("watch", path, "--json", "--listen", "127.48.0.4")
    await watching.event("started")

    watching.send(number)
    report = await watching.event("report", seconds=5.0)
    code, rest, error = await watching.end()

    assert (rest, error) == ("", "")
    assert code == (0 if number == signal.SIGTERM else 130)
    assert (report["complete"], report["sha256"]) == (False, None)
    assert 0 < report["position_seconds"] < 20


@pytest.mark.slow
async def test_interrupted_and_begun_again_only_the_rest_is_fetched(program, server, tmp_path):
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(seconds=20.0, origins=(server.url,)))
    watching = await program("watch", path, "--json", "--listen", "127.48.0.5")
    await watching.event("started")
    while (await watching.event("progress"))["pieces_have"] < 2:
        pass
    watching.send(signal.SIGKILL)  # the hardest of interrupts
    await watching.end()
    path.write_bytes(torrent(seconds=0.5, origins=(server.url,)))
    before = len(server.ranges)

    again = await program("watch", path, "--json", "--listen", "127.48.0.5")
    report = await again.event("report")

    assert report["sha256"] == hashlib.sha256(FILM).hexdigest()
    assert 0 < sum(end - start for start, end in server.ranges[before:]) <= len(FILM) - 32 * 1024


@pytest.mark.slow
async def test_a_server_with_other_bytes_is_told_and_never_shown(program, server, tmp_path):
    """Nobody has the right bytes of piece 0: nothing is shown, and the server is not flooded."""
    server.content = flipped(FILM, 5)
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(origins=(server.url,)))
    watching = await program("watch", path, "--json", "--listen", "127.48.0.6")
    while not (told := await watching.event("progress"))["origin_error"]:
        pass
    watching.send(signal.SIGTERM)
    report = await watching.event("report")
    assert "other bytes than the .torrent promises" in told["origin_error"]
    assert report["start_seconds"] is None
    assert len([start for start, _ in server.ranges if start == 0]) < 20


@pytest.mark.slow
async def test_the_gateway_s_url_is_told_and_reads(program, server, tmp_path):
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(seconds=2.0, origins=(server.url,)))
    watching = await program("watch", path, "--json", "--gateway", "--listen", "127.48.0.7")
    url = (await watching.event("gateway"))["url"]
    reading = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen({url!r}).read())",
        stdout=asyncio.subprocess.PIPE,
    )
    data, _ = await reading.communicate()
    assert data == FILM
    await watching.event("report")


@pytest.mark.slow
async def test_play_ends_with_its_player(program, server, tmp_path):
    """A player that only notes the URL it was given, and ends."""
    player = tmp_path / "player"
    player.write_text('#!/bin/sh\necho "$1" > seen\n')
    player.chmod(0o755)
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(seconds=300.0, origins=(server.url,)))
    playing = await program(
        "play", path, "--json", "--player", os.fspath(player), "--listen", "127.48.0.8"
    )
    report = await playing.event("report")
    code, _, error = await playing.end()
    assert (code, error) == (0, "")
    assert not report["complete"]
    assert (tmp_path / "seen").read_text().startswith("http://127.0.0.1:")
