"""Our tracker beside opentracker: the same announces, rounds interleaved.

What is measured, and how, stands in docs/benchmarks.md.
"""

import contextlib
import json
import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from toast.common.cli import run_cli
from toast.common.errors import ToastError

LOADS = Path(__file__).parent / "trackers"
GIVE_UP_SECONDS = 120.0
CORES = sorted(os.sched_getaffinity(0))


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _ours(*options: str) -> Iterator[tuple[int, int]]:
    """Our tracker as anyone starts it; its port and process."""
    code = "from tracker.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--json", *options]
    with _started(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], GIVE_UP_SECONDS)
        if not ready:
            raise ToastError("our tracker does not start: see its messages above")
        url = json.loads(process.stdout.readline())["url"]
        yield int(url.rpartition(":")[2]), process.pid


@contextlib.contextmanager
def _opentracker(program: str) -> Iterator[tuple[int, int]]:
    port = _free_port()
    words = ["-i", "127.0.0.1", "-p", str(port), "-P", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # opentracker gives up root and stays there
        with _started([program, *words, "-d", folder], stdout=subprocess.DEVNULL) as process:
            yield port, process.pid


@contextlib.contextmanager
def _started(command: list[str], stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
    os.sched_setaffinity(process.pid, {CORES[0]})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _load(script: str, *words: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, LOADS / script, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        preexec_fn=lambda: os.sched_setaffinity(0, {CORES[-1]}),
    )
    if done.returncode:
        raise ToastError(f"{script} failed: {done.stderr.strip().splitlines()[-1]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _rates(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds; answers per CPU second is what one core could do."""
    return {
        "answers_per_cpu_second": round(
            statistics.median(run["answers"] / run["server_cpu_seconds"] for run in runs)
        ),
        "answers_per_second": round(
            statistics.median(run["answers"] / run["seconds"] for run in runs)
        ),
        "server_busy": round(
            statistics.median(run["server_cpu_seconds"] / run["seconds"] for run in runs), 2
        ),
        "load_busy": round(
            statistics.median(run["load_cpu_seconds"] / run["seconds"] for run in runs), 2
        ),
        "lost": sum(run["lost"] for run in runs),
        "refused": sum(run["refused"] for run in runs),
        "rounds": len(runs),
    }


@click.command()
@click.option("--opentracker", default="opentracker", help="The program to compare with.")
@click.option("--seconds", type=float, default=2.0, show_default=True, help="For each round.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--swarms", type=click.IntRange(1), default=100, show_default=True)
@click.option("--peers", type=click.IntRange(1), default=300, show_default=True, help="In a swarm.")
@click.option(
    "--memory-peers", type=int, default=1_000_000, show_default=True, help="0: leave out."
)
@click.option("--json", "as_json", is_flag=True, help="The figures as one JSON line.")
def main(
    opentracker: str,
    seconds: float,
    rounds: int,
    swarms: int,
    peers: int,
    *,
    memory_peers: int,
    as_json: bool,
) -> None:
    """Announces over UDP and HTTP, and memory.

    \b
    Example:
      python benchmarks/bench_tracker.py --rounds 3
    """
    console = Console(stderr=as_json)
    program = shutil.which(opentracker)
    if program is None:
        console.print(f"without opentracker: there is no '{opentracker}' (Debian: opentracker)")
    runs: dict[str, list[dict[str, Any]]] = {
        "udp": [],
        "udp_logged": [],
        "opentracker_udp": [],
        "http": [],
    }
    for number in range(rounds):
        console.print(f"round {number + 1} of {rounds}", style="dim")
        with _ours() as (port, process):
            runs["udp"].append(_load("udp_load.py", port, process, seconds, swarms, peers, 50))
        with (
            tempfile.TemporaryDirectory() as folder,
            _ours("--log", f"{folder}/log") as (
                port,
                process,
            ),
        ):
            run = _load("udp_load.py", port, process, seconds, swarms, peers, 50)
            runs["udp_logged"].append(run)
        if program is not None:
            with _opentracker(program) as (port, process):
                run = _load("udp_load.py", port, process, seconds, swarms, peers, 50)
                runs["opentracker_udp"].append(run)
        with _ours() as (port, process):
            runs["http"].append(_load("http_load.py", port, process, seconds, swarms, peers))
    figures: dict[str, Any] = {"swarms": swarms, "peers_per_swarm": peers, "numwant": 50}
    table = Table(
        "", "answers / CPU s", "answers / s", "server busy", "load busy", "lost", "refused"
    )
    for name, found in runs.items():
        if found:
            rates = _rates(found)
            figures |= {f"{name}_{key}": value for key, value in rates.items()}
            table.add_row(name, *(f"{value:,}" for value in list(rates.values())[:-1]))
    console.print(table)
    cost = statistics.median(
        1
        - (logged["answers"] / logged["server_cpu_seconds"])
        / (plain["answers"] / plain["server_cpu_seconds"])
        for plain, logged in zip(runs["udp"], runs["udp_logged"], strict=True)
    )
    figures["udp_log_cost"] = round(cost, 4)
    console.print(f"a line of the log for each announce costs {cost:.1%} of the answers")
    if program is not None:
        ratio = statistics.median(
            (ours["answers"] / ours["server_cpu_seconds"])
            / (theirs["answers"] / theirs["server_cpu_seconds"])
            for ours, theirs in zip(runs["udp"], runs["opentracker_udp"], strict=True)
        )
        figures["udp_ratio_to_opentracker"] = round(ratio, 3)
        console.print(f"ours / opentracker, answers per CPU second over UDP: {ratio:.2f}")
    for name, words in (("", ()), ("_with_playheads", ("playheads",))) if memory_peers else ():
        memory = _load("memory.py", memory_peers, 300, *words)
        for key in ("bytes_per_peer", "process_bytes_per_peer"):
            figures[f"{key}{name}"] = round(memory[key], 1)
        console.print(
            f"memory{name.replace('_', ' ')}, {memory['peers']:,} peers: "
            f"{memory['bytes_per_peer']:.0f} B each, "
            f"{memory['process_bytes_per_peer']:.0f} B with the whole process"
        )
    if as_json:
        click.echo(json.dumps(figures))


if __name__ == "__main__":
    run_cli(main)
