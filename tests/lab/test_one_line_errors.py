"""What people do wrong, or what goes wrong around them: one clear line each, and nothing left over.

Run as a person would, through the installed programs.
"""

import contextlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from experiments.processes import program

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(60)]


def run(name, *words, seconds=30):
    """Run one of our programs to its end."""
    command = [program(name), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def the_line(done, *, code):
    """The one line that a failed program said, usage aside."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Usage: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def tree(*folders):
    """Every file and folder below some folders, with the sizes of files."""
    return {
        (str(path), path.stat().st_size if path.is_file() else None)
        for folder in folders
        for path in folder.rglob("*")
    }


@contextlib.contextmanager
def serving(name, *words):
    """One of our servers, and what it says when it is ready."""
    command = [program(name), "serve", *map(str, words), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        ready, _, _ = select.select([process.stdout], [], [], 20)
        assert ready, f"{name} does not get ready"
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=15)
    assert process.returncode == 0


@pytest.fixture
def store(tmp_path):
    """An empty store on two disks."""
    return make_store(tmp_path, tmp_path / "disk-1", tmp_path / "disk-2")


def make_store(folder, *disks):
    words = [word for disk in disks for word in ("--disk", disk)]
    assert run("vodserver", "init", "--store", folder / "store", *words).returncode == 0
    return folder / "store"


def titles(store):
    return json.loads(run("vodserver", "list", "--store", store, "--json").stdout)


@pytest.fixture(scope="module")
def torrent(film, tmp_path_factory):
    """A sound .torrent whose server is gone, and which names no tracker."""
    folder = tmp_path_factory.mktemp("gone")
    store = make_store(folder, folder / "disk-1", folder / "disk-2")
    assert run("vodserver", "add", "--store", store, film).returncode == 0
    path = folder / "film.torrent"
    with serving("vodserver", "--store", store, "--no-seed") as ready:
        url = f"{ready['url']}/titles/film/torrent"
        with urllib.request.urlopen(url, timeout=10) as answer:
            path.write_bytes(answer.read())
    return path


@pytest.fixture
def taken():
    """A port of this machine that someone else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def free():
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def small_disk(tmp_path):
    """Makes real disks of a given size in bytes."""
    mounted = []

    def small_disk(name, size):
        if os.geteuid() != 0:
            pytest.skip("only root can mount a small disk")
        folder = tmp_path / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "toast-test", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield small_disk
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


# -- films that cannot be taken in ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["empty", "text", "cut short", "cut to its head", "missing"])
def test_what_is_no_whole_film_is_not_taken_in(store, film, tmp_path, kind):
    path = tmp_path / "film.mp4"
    whole = film.read_bytes()
    contents = {
        "empty": b"",
        "text": b"This is a letter about a film.\n" * 999,
        "cut short": whole[: len(whole) * 2 // 3],
        "cut to its head": whole[:1000],
    }
    if kind in contents:
        path.write_bytes(contents[kind])
    disks = (tmp_path / "disk-1", tmp_path / "disk-2")
    before = tree(*disks)

    line = the_line(run("vodserver", "add", "--store", store, path), code=2)

    assert line.startswith("vodserver: ")
    assert "film.mp4" in line
    assert titles(store) == []
    assert tree(*disks) == before


def test_a_disk_that_becomes_full_leaves_no_half_of_a_film(small_disk, film, tmp_path):
    """The disk holds half of what it should; the other one is as large as anyone could wish."""
    small, large = small_disk("small", film.stat().st_size // 2), tmp_path / "large"
    store = make_store(tmp_path, small, large)
    before = tree(small, large)

    line = the_line(run("vodserver", "add", "--store", store, film), code=1)

    assert "small" in line
    assert "full" in line or "space" in line
    assert titles(store) == []
    assert tree(small, large) == before


def test_a_store_is_as_good_as_new_after_a_disk_was_full(small_disk, film, tmp_path):
    small, large = small_disk("small", 2 * film.stat().st_size), tmp_path / "large"
    store = make_store(tmp_path, small, large)
    ballast = small / "ballast"
    ballast.write_bytes(bytes(film.stat().st_size * 3 // 2))
    the_line(run("vodserver", "add", "--store", store, film), code=1)
    ballast.unlink()

    assert run("vodserver", "add", "--store", store, film).returncode == 0
    assert [title["id"] for title in titles(store)] == ["film"]


def test_a_viewer_whose_disk_is_full_says_so(small_disk, film, store):
    folder = small_disk("viewer", film.stat().st_size // 3)
    assert run("vodserver", "add", "--store", store, film).returncode == 0
    with serving("vodserver", "--store", store, "--no-seed") as ready:
        url = f"{ready['url']}/titles/film"
        done = run("toast", "watch", url, "--folder", folder, "--listen", "127.0.0.1", "--json")
    line = the_line(done, code=1)
    assert str(folder) in line
    assert "space" in line


# -- sources that cannot be watched --------------------------------------------------------------


def watch(tmp_path, source, *words):
    """`toast watch` in a folder of its own, which it must not even make."""
    folder = tmp_path / "films"
    listen = () if "--listen" in words else ("--listen", "127.0.0.1")
    done = run("toast", "watch", source, "--folder", folder, *listen, *words)
    assert not folder.exists()
    return done


def test_garbage_is_no_torrent(tmp_path):
    path = tmp_path / "garbage.torrent"
    path.write_bytes(os.urandom(5000))
    assert "garbage.torrent" in the_line(watch(tmp_path, path), code=2)


def test_a_torrent_that_is_cut_short_is_none(torrent, tmp_path):
    path = tmp_path / "cut.torrent"
    path.write_bytes(torrent.read_bytes()[:-100])
    assert "cut.torrent" in the_line(watch(tmp_path, path), code=2)


def test_a_film_is_no_torrent(film, tmp_path):
    assert "film.mp4" in the_line(watch(tmp_path, film), code=2)


def test_a_torrent_that_is_not_there(tmp_path):
    line = the_line(watch(tmp_path, tmp_path / "none.torrent"), code=2)
    assert "none.torrent does not exist" in line


def test_a_folder_is_no_torrent(tmp_path):
    assert str(tmp_path) in the_line(watch(tmp_path, tmp_path), code=2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}/titles/film", "http://no-such-host.invalid/"])
def test_a_server_that_is_not_there(tmp_path, free, url):
    line = the_line(watch(tmp_path, url.format(free)), code=1)
    assert "cannot be reached" in line


def test_a_title_that_the_server_does_not_have(tmp_path, store):
    with serving("vodserver", "--store", store, "--no-seed") as ready:
        line = the_line(watch(tmp_path, f"{ready['url']}/titles/none"), code=1)
    assert "404" in line


def test_an_origin_that_is_not_there(tmp_path, torrent, free):
    """It may have been mistyped: better said at once than found out by a film that never starts."""
    done = watch(tmp_path, torrent, "--origin", f"http://127.0.0.1:{free}")
    assert f"127.0.0.1:{free}" in the_line(done, code=1)


# -- a film that nobody has at the moment --------------------------------------------------------


def test_a_film_that_nobody_has_is_waited_for_aloud_until_interrupted(torrent, tmp_path):
    """Server gone, no tracker: it may come back, so we wait; but we say what we wait for."""
    words = ("watch", torrent, "--folder", tmp_path / "films", "--listen", "127.0.0.1", "--json")
    process = subprocess.Popen(
        [program("toast"), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said = {}
        until = time.monotonic() + 20
        while said.get("origin_error") is None:
            assert time.monotonic() < until, said
            said = json.loads(process.stdout.readline())
        assert "cannot be reached" in said["origin_error"]
        assert said["state"] == "starting"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1
    report = json.loads(out.splitlines()[-1])
    assert report["event"] == "report"
    assert (report["complete"], report["sha256"], report["start_seconds"]) == (False, None, None)


def test_a_film_that_nobody_has_is_waited_for_aloud_on_a_terminal(torrent, tmp_path):
    words = ("watch", torrent, "--folder", tmp_path / "films", "--listen", "127.0.0.1")
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"there are no terminals here: {error}")
    process = subprocess.Popen(
        [program("toast"), *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "400"},
    )
    os.close(theirs)
    shown = b""
    try:
        until = time.monotonic() + 20
        while b"cannot be reached" not in shown:
            ready, _, _ = select.select([ours], [], [], until - time.monotonic())
            assert ready, shown
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal is gone with its last program
            while part := os.read(ours, 65536):
                shown += part
        assert process.wait(timeout=10) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"Traceback" not in shown
    assert b"not complete: watch it again to resume" in shown


# -- ports that are taken ------------------------------------------------------------------------


def test_a_taken_port_of_the_vod_server(store, taken):
    line = the_line(run("vodserver", "serve", "--store", store, "--port", taken), code=1)
    assert f"port {taken}" in line


def test_a_taken_port_of_the_seed(store, taken):
    words = ("--store", store, "--port", 0, "--seed", "--seed-port", taken)
    assert str(taken) in the_line(run("vodserver", "serve", *words), code=1)


def test_a_taken_port_of_the_tracker(taken):
    assert str(taken) in the_line(run("toast-tracker", "serve", "--port", taken), code=1)


def test_a_taken_port_of_the_viewer(torrent, tmp_path, taken):
    done = watch(tmp_path, torrent, "--listen", f"127.0.0.1:{taken}")
    assert f"127.0.0.1:{taken}" in the_line(done, code=1)


def test_a_taken_port_of_the_gateway(torrent, tmp_path, taken):
    words = ("watch", torrent, "--folder", tmp_path / "films", "--listen", "127.0.0.1")
    done = run("toast", *words, "--gateway", "--gateway-port", taken, "--json")
    assert str(taken) in the_line(done, code=1)


def test_an_address_that_is_not_ours(torrent, tmp_path):
    done = watch(tmp_path, torrent, "--listen", "192.0.2.1:6881")
    assert "192.0.2.1:6881" in the_line(done, code=1)


@pytest.mark.parametrize("source", ["http://[::1", "https://[x]/titles/film"])
def test_what_is_no_url_either(tmp_path, source):
    assert source in the_line(watch(tmp_path, source), code=2)


def test_an_endless_file_is_no_torrent(tmp_path):
    assert "/dev/zero" in the_line(watch(tmp_path, "/dev/zero"), code=2)


def test_a_film_that_nobody_has_is_waited_for_aloud_in_a_log(torrent, tmp_path):
    """What it waits for is told once to people whose output goes to a file."""
    words = ("watch", torrent, "--folder", tmp_path / "films", "--listen", "127.0.0.1")
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program("toast"), *map(str, words)], stdout=output, stderr=output
        )
        try:
            until = time.monotonic() + 10
            while "cannot be reached" not in log.read_text() and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=10)
    assert process.returncode == 130
    assert log.read_text().count("cannot be reached") == 1
    assert "Traceback" not in log.read_text()
