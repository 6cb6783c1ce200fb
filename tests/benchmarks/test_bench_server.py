"""The comparison with nginx: its figures, its configurations, its film and its own load."""

import contextlib
import importlib
import os
import re
import select
import subprocess
import sys
import threading
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import av
import pytest

from experiments.errors import LabError
from experiments.nginx import find_nginx
from toast.media import probe

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SIZE = 65_536
FILM_BYTES = 4 * SIZE


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """Benchmarks are scripts: their modules are found beside them."""
    monkeypatch.syspath_prepend(BENCHMARKS)


def module(name):
    return importlib.import_module(f"server.{name}")


def run(rate=1e9, **changes):
    values = {"requests": 10.0, "cpu": 0.2, "p50": 0.001, "p99": 0.01}
    return replace(
        module("load").Run(**values, rate=rate, server_busy=0.9, load_busy=0.5, errors=0), **changes
    )


def cell(ours, theirs, name="best"):
    return {"ours": ours, name: theirs}


def test_a_ratio_compares_runs_of_the_same_round():
    """A machine that is half as fast in one round changes both, not their ratio."""
    report = module("report")
    rounds = [run(2e9), run(1e9), run(4e9)], [run(4e9), run(2e9), run(4e9)]
    found = report.ratio(*rounds, lambda one: one.rate)
    assert (found.median, found.least, found.most) == (0.5, 0.5, 1.0)
    assert str(found) == "0.50 (0.50..1.00)"


def test_figures_name_size_connections_and_the_worst():
    runs = {
        (256 * 1024, 1): cell([run(1e9)], [run(2e9)]),
        (256 * 1024, 64): cell([run(3e9)], [run(2e9)]),
    }
    found = module("report").figures(runs)
    assert found["throughput_ratio_256k_c1"] == 0.5
    assert found["throughput_ratio_256k_c64"] == 1.5
    assert found["throughput_ratio_256k_min"] == 0.5
    assert found["ours_mb_per_second_256k_c64"] == 3000.0
    assert found["reached_throughput_at_256k_up"] is False
    assert found["invalid_cells"] == 0


def test_other_configurations_stand_in_the_name_and_count_for_the_worst():
    runs = {(1 << 20, 8): cell([run(1e9)], [run(4e9)], "default") | {"best": [run(1e9)]}}
    found = module("report").figures(runs)
    assert found["throughput_ratio_default_1m_c8"] == 0.25
    assert found["throughput_ratio_1m_c8"] == 1.0
    assert found["throughput_ratio_1m_min"] == 0.25


def test_each_goal_has_its_own_sizes():
    """What is enough for 64 KiB is not for 256 KiB."""
    runs = {
        (64 * 1024, 8): cell([run(0.6e9)], [run(1e9)]),
        (256 * 1024, 8): cell([run(0.6e9)], [run(1e9)]),
        (1 << 20, 8): cell([run(1e9, p99=0.03)], [run(1e9)]),
    }
    verdicts = {goal.name: (goal.reached, goal.value) for goal in module("report").goals(runs)}
    assert verdicts == {
        "throughput at 256 KiB and more": (False, 0.6),
        "throughput at 64 KiB": (True, 0.6),
        "p99 latency": (False, 3.0),
    }


def test_a_cell_with_an_error_gives_no_ratio_and_reaches_no_goal():
    report = module("report")
    runs = {(1 << 20, 8): cell([run(9e9, errors=1)], [run(1e9)])}
    found = report.figures(runs)
    assert found["invalid_cells"] == 1
    assert not [name for name in found if "ratio" in name or name.startswith("reached")]
    assert report.goals(runs) == []
    assert report.table(runs).row_count == 2


def test_without_a_rival_there_is_nothing_to_compare():
    report = module("report")
    runs = {(1 << 20, 8): {"ours": [run()]}}
    assert report.goals(runs) == []
    assert report.table(runs).row_count == 1


SUMMARY = {"requests": 100, "bytes": 100 * SIZE + 30_000, "seconds": 2.0, "p50": 0.1, "p99": 0.2}
NO_ERRORS = dict.fromkeys(("connect", "read", "write", "status", "timeout"), 0)


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({}, 0),
        ({"status": 2, "read": 1}, 3),
        ({"bytes": 100 * FILM_BYTES}, 1),  # whole films instead of ranges
        ({"bytes": 99 * SIZE}, 1),  # less than was asked for
        ({"requests": 0, "bytes": 0}, 1),
    ],
)
def test_what_is_no_range_is_an_error(changes, errors):
    summary = SUMMARY | NO_ERRORS | changes
    load = module("load")
    found = load.parse(summary, size=SIZE, connections=8, cpu=1.0, busy=(0.5, 0.6))
    assert found.errors == errors
    assert found.requests == summary["requests"] / 2.0


def test_nginx_keeps_to_its_folder():
    """Whatever it writes, and whatever it serves, is under the folders that it is given."""
    nginx = module("nginx")
    text = nginx.configuration(
        "listen: sndbuf=256k; sendfile on;",
        prefix=Path("/one"),
        root=Path("/two"),
        port=8081,
        workers=2,
    )
    assert "listen 127.0.0.1:8081 sndbuf=256k;" in text
    assert "  sendfile on;\n" in text
    assert "worker_processes 2;" in text
    assert text.count("/one/") == 7
    assert {word for word in text.split() if word.startswith("/") and "/one/" not in word} == {
        "/two;"
    }


@pytest.mark.interop
@pytest.mark.parametrize("name", ["default", "debian", "threads", "best"])
def test_nginx_takes_every_configuration(name, tmp_path):
    nginx = module("nginx")
    try:
        program = find_nginx()
    except LabError as error:
        pytest.skip(str(error))
    text = nginx.configuration(
        nginx.CONFIGURATIONS[name], prefix=tmp_path, root=tmp_path, port=8081, workers=1
    )
    (tmp_path / "nginx.conf").write_text(text)
    command = [program, "-t", "-p", tmp_path, "-e", tmp_path / "log", "-c", tmp_path / "nginx.conf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_large_film_is_a_film(tmp_path):
    """It is as large as was asked for, a store takes it, and it plays."""
    film = module("film").make_large_film(tmp_path / "film.mp4", 4_000_000)
    assert abs(film.stat().st_size - 4_000_000) < 100_000
    info = probe(film)
    assert (info.container, info.video_codec) == ("mp4", "h264")
    with av.open(str(film)) as container:
        assert sum(1 for _ in container.decode(video=0)) == info.frames == 57


def test_a_program_has_ended_when_its_block_is_left(tmp_path):
    """Also its children, also when the block fails; and what they computed is counted."""
    programs = module("programs")
    code = (
        "import os, time\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    end = time.process_time() + 0.2\n"
        "    while time.process_time() < end: pass\n"
        "    print('ready', os.getpid(), flush=True)\n"
        "time.sleep(60)\n"
    )
    log = tmp_path / "log"
    core = min(os.sched_getaffinity(0))
    with (
        contextlib.suppress(KeyboardInterrupt),
        programs.running("it", [sys.executable, "-c", code], cores=[core], log=log) as it,
    ):
        # The whole line: with PYTHONUNBUFFERED each of its words is a write of its own.
        while not re.fullmatch(r"ready \d+\n", log.read_text()):
            it.check()
        child = int(log.read_text().split()[1])
        assert os.sched_getaffinity(child) == {core}
        assert it.cpu_seconds() >= 0.05
        watched = os.pidfd_open(child)
        raise KeyboardInterrupt
    assert it.process.returncode is not None
    ended, _, _ = select.select([watched], [], [], 5.0)
    os.close(watched)
    assert ended


def test_a_program_that_ends_at_once_is_reported_with_its_last_words(tmp_path):
    programs = module("programs")
    code = "import sys; sys.exit('no such port\\n')"
    command = [sys.executable, "-c", code]
    core = min(os.sched_getaffinity(0))
    with programs.running("it", command, cores=[core], log=tmp_path / "log") as it:
        it.process.wait()
        with pytest.raises(programs.BenchError, match="it ended with code 1: no such port"):
            it.check()


class Handler(BaseHTTPRequestHandler):
    """Serves ranges of a film of zeros; `answer` may spoil them."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        size = int(last) - int(first) + 1
        self.server.asked.add((int(first), size))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(size))
        self.server.answers += 1
        if self.server.answers % self.server.closes_after == 0:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(bytes(size))

    def log_message(self, *_):
        """A test says nothing."""


@pytest.fixture
def film_server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.status = set(), HTTPStatus.PARTIAL_CONTENT
        server.answers, server.closes_after = 0, 1_000_000
        server.handle_error = lambda *_: None  # the load leaves in the middle of an answer
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def drain(server, seconds=0.4):
    url = f"http://127.0.0.1:{server.server_port}/film.mp4"
    return module("drain").run(
        url, size=SIZE, film_bytes=FILM_BYTES, connections=2, seconds=seconds, seed=1
    )


def test_the_load_counts_whole_ranges_and_every_byte(film_server):
    summary = drain(film_server)
    assert summary["requests"] > 2
    assert summary["read"] == 0
    assert 0 < summary["p50"] <= summary["p99"] <= summary["seconds"]
    load = module("load")
    assert load.parse(summary, size=SIZE, connections=2, cpu=1.0, busy=(1, 1)).errors == 0
    assert {start % 16_384 for start, _ in film_server.asked} == {0}
    assert {size for _, size in film_server.asked} == {SIZE}
    assert max(start for start, _ in film_server.asked) <= FILM_BYTES - SIZE


def test_a_server_may_close_a_connection_after_an_answer(film_server):
    """As nginx does, unless it is told otherwise, after 1,000 requests: that is no error."""
    film_server.closes_after = 2
    summary = drain(film_server)
    assert summary["requests"] > 4
    assert summary["read"] == 0


def test_the_load_sees_answers_that_are_no_ranges(film_server):
    film_server.status = HTTPStatus.OK
    summary = drain(film_server)
    assert summary["requests"] == 0
    assert summary["read"] == 2
