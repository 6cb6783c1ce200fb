"""aria2 (https://aria2.github.io), as Debian packages it, against our tracker and VoD server."""

import shutil
import socket
import subprocess

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture
def command():
    """An aria2 that finds others through the tracker alone, as words of a command line."""
    program = shutil.which("aria2c")
    if program is None:
        pytest.skip("aria2c is not installed (Debian package aria2)")

    def command(torrent, folder, *options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        return [
            *(program, "--no-conf", "--quiet", f"--dir={folder}", f"--listen-port={port}"),
            *("--enable-dht=false", "--enable-dht6=false", "--bt-enable-lpd=false"),
            *("--enable-peer-exchange=false", "--file-allocation=none", *options, str(torrent)),
        ]

    return command


@pytest.fixture
def aria2(command, tmp_path):
    """Downloads what a .torrent names; returns the file."""

    def aria2(torrent):
        folder = tmp_path / "aria2"
        words = command(torrent, folder, "--seed-time=0", "--bt-stop-timeout=30")
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (file,) = (path for path in folder.iterdir() if path.suffix != ".aria2")
        return file

    return aria2


def test_a_film_comes_from_the_url_list_alone(start_service, aria2):
    """BEP 19: any client that knows web seeds can have the film without our viewer."""
    service = start_service(seed=False)
    file = aria2(service.torrent)
    assert file.read_bytes() == service.film.read_bytes()
    status = service.origin_status()
    assert status["http_bytes_sent"] >= service.film.stat().st_size
    assert status["seed_bytes_sent"] == 0


def test_a_film_comes_from_the_swarm_alone(start_service, aria2):
    """BEP 3 from end to end: our tracker names our seed, and the seed sends every byte."""
    service = start_service(seed=True)
    before = service.origin_status()["http_bytes_sent"]
    file = aria2(service.swarm_torrent)
    assert file.read_bytes() == service.film.read_bytes()
    status = service.origin_status()
    assert status["seed_bytes_sent"] >= service.film.stat().st_size
    assert status["http_bytes_sent"] - before < 10_000
    tracker = service.tracker_status()
    # Ours, its start, and its leaving or completion; and it was told nothing it could not read.
    assert tracker["announces"] >= 3
    assert tracker["failures"] == 0
    assert tracker["peers"] == 1


@pytest.fixture
def start_holder(programs, command, tmp_path, wait_until):
    """Starts an aria2 that has a service's film already and shares it."""

    def start_holder(service):
        folder = tmp_path / "holder"
        folder.mkdir()
        shutil.copyfile(service.film, folder / service.film.name)
        options = ("--check-integrity=true", "--seed-ratio=0.0")
        programs.start(*command(service.swarm_torrent, folder, *options))
        wait_until(lambda: service.tracker_status()["peers"] == 1, "the holder is at the tracker")

    return start_holder


def test_two_stock_clients_find_each_other_at_our_tracker(start_service, start_holder, aria2):
    """Neither of them is ours, and the VoD server sends nothing of the film."""
    service = start_service(seed=False)
    before = service.origin_status()["http_bytes_sent"]
    start_holder(service)
    file = aria2(service.swarm_torrent)
    assert file.read_bytes() == service.film.read_bytes()
    assert service.origin_status()["http_bytes_sent"] - before < 10_000
    assert service.tracker_status()["failures"] == 0
