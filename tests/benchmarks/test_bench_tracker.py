"""The comparison with opentracker: its loads, against our tracker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *words):
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture
def tracker():
    """Our tracker as a program: its port and process."""
    code = "from tracker.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    url = json.loads(process.stdout.readline())["url"]
    yield int(url.rpartition(":")[2]), process.pid
    process.terminate()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words"), [("trackers/udp_load.py", (50,)), ("trackers/http_load.py", ())]
)
def test_every_answer_counts(script, words, tracker):
    filled = run(script, *tracker, 0, 2, 64, *words)
    assert filled["answers"] + filled["lost"] >= 2 * 64
    figures = run(script, *tracker, 0.2, 2, 64, *words)
    assert figures["answers"] > 0
    assert figures["refused"] == 0
    assert figures["server_cpu_seconds"] > 0
    if "peers_per_answer" in figures and not figures["lost"]:
        assert figures["peers_per_answer"] == 50  # what the requests of the load ask for


@pytest.mark.slow
def test_memory_is_told_for_each_peer():
    figures = run("trackers/memory.py", 3000, 300, "playheads")
    assert (figures["peers"], figures["swarms"]) == (3000, 10)
    assert figures["process_bytes_per_peer"] > figures["bytes_per_peer"] > 0


@pytest.mark.slow
def test_without_opentracker_it_says_so_and_measures_ours():
    words = ("--opentracker", "no-such-program", "--rounds", 2, "--seconds", 0.2)
    figures = run(
        "bench_tracker.py", *words, "--swarms", 2, "--peers", 64, "--memory-peers", 0, "--json"
    )
    assert figures["udp_answers_per_cpu_second"] > 0
    assert 0 < figures["udp_core_speed"] <= 1
    assert figures["http_answers_per_cpu_second"] > 0
    assert "udp_ratio_to_opentracker" not in figures
