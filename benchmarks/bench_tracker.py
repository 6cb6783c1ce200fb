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
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import click
from rich.console import Console
from rich.table import Table

from toast.common.cli import run_cli
from toast.common.errors import ToastError

LOADS = Path(__file__).parent / "trackers"
GIVE_UP_SECONDS = 120.0
CORES = sorted(os.sched_getaffinity(0))
FULL_SPEED = 0.9
SPIN_EVERY_SECONDS, SPIN_STEPS = 0.005, 1000


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


class _CoreSpeed:
    """How much CPU time a fixed piece of work takes on the server's core, meanwhile.

    Other guests of a shared machine come and go within tenths of a second, and take up to half of
    a core's speed; the guest's own clocks do not show it.
    """

    def __enter__(self) -> Self:
        self._ended = threading.Event()
        self._took: list[float] = []
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """For one piece."""
        return statistics.median(self._took)

    def _watch(self) -> None:
        os.sched_setaffinity(0, {CORES[0]})  # of this thread alone
        while not self._ended.wait(SPIN_EVERY_SECONDS):
            began, total = time.thread_time(), 0
            for number in range(SPIN_STEPS):
                total += number
            self._took.append(time.thread_time() - began)


def _median(runs: list[dict[str, Any]], of: str, over: str) -> float:
    return statistics.median(run[of] / run[over] for run in runs)


def _rates(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds; answers per CPU second is what one core could do."""
    calm = [run for run in runs if run["core_speed"] >= FULL_SPEED]
    return {
        "answers_per_cpu_second": round(_median(runs, "answers", "server_cpu_seconds")),
        "answers_per_cpu_second_at_full_speed": (
            round(_median(calm, "answers", "server_cpu_seconds")) if calm else None
        ),
        "core_speed": round(statistics.median(run["core_speed"] for run in runs), 2),
        "answers_per_second": round(_median(runs, "answers", "seconds")),
        "server_busy": round(_median(runs, "server_cpu_seconds", "seconds"), 2),
        "load_busy": round(_median(runs, "load_cpu_seconds", "seconds"), 2),
        "lost": sum(run["lost"] for run in runs),
        "refused": sum(run["refused"] for run in runs),
        "rounds_at_full_speed": len(calm),
        "rounds": len(runs),
    }


def _measured(
    console: Console,
    loads: dict[str, tuple[tuple[object, ...], tuple[int, int]]],
    seconds: float,
    rounds: int,
) -> dict[str, list[dict[str, Any]]]:
    """Each load on its server in turn, in short rounds that note how fast the core was; by name."""
    for (script, *words), (port, process) in loads.values():
        _load(str(script), port, process, 0, *words)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in loads}
    for number in range(rounds):
        if not number % 10:
            console.print(f"round {number + 1} of {rounds}", style="dim")
        for name, ((script, *words), (port, process)) in loads.items():
            with _CoreSpeed() as core:
                run = _load(str(script), port, process, seconds, *words)
            runs[name].append(run | {"spin": core.seconds})
    fastest = min(run["spin"] for found in runs.values() for run in found)
    return {
        name: [run | {"core_speed": fastest / run["spin"]} for run in found]
        for name, found in runs.items()
    }


@click.command()
@click.option("--opentracker", default="opentracker", help="The program to compare with.")
@click.option("--seconds", type=float, default=0.3, show_default=True, help="For each round.")
@click.option("--rounds", type=click.IntRange(1), default=60, show_default=True)
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
    with contextlib.ExitStack() as servers:
        folder = servers.enter_context(tempfile.TemporaryDirectory())
        udp: tuple[object, ...] = ("udp_load.py", swarms, peers, 50)
        http: tuple[object, ...] = ("http_load.py", swarms, peers)
        loads = {
            "udp": (udp, servers.enter_context(_ours())),
            "udp_logged": (udp, servers.enter_context(_ours("--log", f"{folder}/log"))),
            "http": (http, servers.enter_context(_ours())),
        }
        if program is not None:
            loads["opentracker_udp"] = (udp, servers.enter_context(_opentracker(program)))
        runs = _measured(console, loads, seconds, rounds)
    figures: dict[str, Any] = {"swarms": swarms, "peers_per_swarm": peers, "numwant": 50}
    table = Table(
        *("", "answers / CPU s", "at full speed", "core's speed", "answers / s", "server busy"),
        *("load busy", "lost", "refused", "rounds at full speed", "rounds"),
    )
    for name, found in runs.items():
        rates = _rates(found)
        figures |= {f"{name}_{key}": value for key, value in rates.items()}
        table.add_row(name, *("-" if value is None else f"{value:,}" for value in rates.values()))
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
