"""Our real servers as processes, for programs that are not ours."""

import contextlib
import json
import select
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import bencode2
import pytest

START_SECONDS = 30.0


@pytest.fixture(scope="session")
def wait_until():
    """Looks ten times a second until something is so; these are other people's programs."""

    def wait_until(condition, what, seconds=30.0):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {seconds:g} s in vain until {what}")
            time.sleep(0.1)

    return wait_until


def get_json(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


@dataclass
class Programs:
    """Starts programs with their output in files, and ends whatever still runs."""

    folder: Path
    running: list = field(default_factory=list)

    def start(self, *command, stdout=None):
        log = self.folder / f"program-{len(self.running)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=stdout or output,
                stderr=output,
                start_new_session=True,
            )
        self.running.append((process, log))
        return process

    def start_server(self, room, *arguments):
        """One of our servers, and what it says when it is ready."""
        code = f"from {room}.cli import main; main()"
        process = self.start(
            sys.executable, "-c", code, "serve", *arguments, stdout=subprocess.PIPE
        )
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else b""
        if not line:
            pytest.fail(f"{room} did not start: {self.running[-1][1].read_text()}")
        return json.loads(line)

    def stop_all(self):
        """Ask all to stop, and fail if one of our servers does not do so cleanly."""
        unclean = []
        for process, log in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            if process.args[0] == sys.executable and process.returncode != 0:
                unclean.append(f"{process.args}: {process.returncode}, {log.read_text()}")
        assert not unclean, unclean


@dataclass(frozen=True)
class Service:
    """A film on a VoD server, and a tracker.

    Attributes:
        film: the film as it was put in.
        torrent: its .torrent file, as the server gives it.
        swarm_torrent: the same without `url-list`: only peers can bring the film.
        origin_url: the VoD server.
        tracker_url: the tracker.
    """

    film: Path
    torrent: Path
    swarm_torrent: Path
    origin_url: str
    tracker_url: str

    def origin_status(self):
        return get_json(f"{self.origin_url}/status")

    def tracker_status(self):
        return get_json(f"{self.tracker_url}/status")


@pytest.fixture
def programs(tmp_path):
    programs = Programs(tmp_path)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(programs.stop_all)
        yield programs


@pytest.fixture
def start_service(programs, small_film, tmp_path, wait_until):
    """Brings a tracker and a VoD server up on one address, the film in the store."""

    def start_service(*, seed, host="127.0.0.1"):
        tracker = programs.start_server("tracker", "--host", host, "--port", "0", "--json")
        store = tmp_path / "store"
        disks = [tmp_path / f"disk-{number}" for number in range(3)]
        for disk in disks:
            disk.mkdir()
        options = [word for disk in disks for word in ("--disk", disk)]
        vodserver("init", "--store", store, *options)
        title = json.loads(vodserver("add", small_film, "--store", store, "--json"))
        origin = programs.start_server(
            "vodserver",
            *("--store", store, "--host", host, "--port", "0", "--json"),
            *("--tracker", tracker["announce_url"]),
            "--seed" if seed else "--no-seed",
        )
        torrent = tmp_path / "film.torrent"
        url = get_json(f"{origin['url']}/titles/{title['id']}")["torrent"]
        with urllib.request.urlopen(url, timeout=10) as response:
            torrent.write_bytes(response.read())
        service = Service(
            film=small_film,
            torrent=torrent,
            swarm_torrent=without_url_list(torrent),
            origin_url=origin["url"],
            tracker_url=tracker["url"],
        )
        if seed:
            wait_until(lambda: service.tracker_status()["peers"] == 1, "the seed is at the tracker")
        return service

    return start_service


def vodserver(*arguments):
    words = [sys.executable, "-c", "from vodserver.cli import main; main()", *map(str, arguments)]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout


def without_url_list(torrent):
    metainfo = bencode2.bdecode(torrent.read_bytes())
    del metainfo[b"url-list"]
    bare = torrent.with_name("swarm.torrent")
    bare.write_bytes(bencode2.bencode(metainfo))
    return bare
