"""What reading a file costs those who send from it: in one call, and in ever longer ones.

Linux keeps what is read in folios that grow with the steps of a sequence; what is asked for in one
call it keeps in single pages. Two sets of the same files are dropped from memory and read again in
each round, one in one call for each file, the other as the store reads (`read_fully`); then ranges
of both are sent over loopback, by sendfile(2), to a process on another core that has the kernel
drop them, and the kernel is asked what of each range it has in memory. The order alternates.
Printed are medians over the rounds, and ratios within them.

    python benchmarks/bench_readahead.py [--files 12] [--file-bytes 9MiB] [--rounds 21] [--json]
"""

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from toast.common.cli import SIZE, run_cli
from vodserver.store.files import OpenFile, read_fully

RANGE = 256 * 1024
RANGES = 1000
KINDS = ("in one call", "as the store reads")

_DRAIN = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    nowhere = bytearray(8 << 20)
    while peer.recv_into(nowhere, len(nowhere), socket.MSG_TRUNC):
        pass
"""


def microseconds(act: Callable[[], object]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1e6


def fill(paths: list[Path], *, begins: bool) -> None:
    """Read files from the disk, whole."""
    for path in paths:
        size = path.stat().st_size
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            read_fully(fd, memoryview(bytearray(size)), 0, size, begins=begins)
        finally:
            os.close(fd)


def send(peer: socket.socket, file: OpenFile, offset: int) -> None:
    """Send a range."""
    stop = offset + RANGE
    while offset < stop:
        offset += os.sendfile(peer.fileno(), file.fd, offset, stop - offset)


def measure(
    paths: list[Path], peer: socket.socket, rng: random.Random, *, begins: bool
) -> dict[str, float]:
    """One round of one kind: microseconds for each range, and megabytes a second of reading."""
    fill_time = microseconds(lambda: fill(paths, begins=begins))
    files = [OpenFile(path) for path in paths]
    places = [
        (file := rng.choice(files), rng.randrange(0, file.size - RANGE, 16 * 1024))
        for _ in range(RANGES)
    ]
    asking = microseconds(lambda: [f.in_memory(at, at + RANGE) for f, at in places])
    sending = microseconds(lambda: [send(peer, f, at) for f, at in places])
    missing = sum(not f.in_memory(at, at + RANGE) for f, at in places)
    return {
        "read_megabytes_per_second": sum(file.size for file in files) / fill_time,
        "ask_microseconds": asking / RANGES,
        "send_microseconds": sending / RANGES,
        "ranges_dropped_meanwhile": missing,
    }


def compare(folder: Path, files: int, file_bytes: int, rounds: int) -> dict[str, list[dict]]:
    """The rounds of both kinds."""
    sets = {kind: [folder / f"{nth}-{n}" for n in range(files)] for nth, kind in enumerate(KINDS)}
    for paths in sets.values():
        for path in paths:
            with path.open("wb") as file:
                file.write(os.urandom(file_bytes))
                os.fsync(file.fileno())
    runs: dict[str, list[dict]] = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        cores = sorted(os.sched_getaffinity(0))
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        os.sched_setaffinity(0, cores[:1])
        command = [sys.executable, "-c", _DRAIN, str(listening.getsockname()[1])]
        drain = stack.enter_context(subprocess.Popen(command))
        stack.callback(drain.terminate)
        os.sched_setaffinity(drain.pid, cores[1:2] or cores)
        peer = stack.enter_context(listening.accept()[0])
        for nth in range(rounds):
            for kind in KINDS if nth % 2 else reversed(KINDS):
                rng = random.Random(nth)  # noqa: S311 - which ranges is no secret
                runs[kind].append(measure(sets[kind], peer, rng, begins=kind == KINDS[1]))
    return runs


@click.command(name="bench_readahead")
@click.option("--files", type=click.IntRange(1), default=12, show_default=True)
@click.option("--file-bytes", type=SIZE, default=9 << 20, help="Of each.  [default: 9 MiB]")
@click.option("--rounds", type=click.IntRange(1), default=21, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON with the figures.")
def bench(files: int, file_bytes: int, rounds: int, as_json: bool) -> None:
    """Measure how fast ranges are sent that were read in two ways."""
    with tempfile.TemporaryDirectory(prefix="bench-readahead-") as scratch:
        runs = compare(Path(scratch), files, max(file_bytes, 2 * RANGE), rounds)
    names = list(runs[KINDS[0]][0])
    medians = {
        kind: {n: statistics.median(run[n] for run in runs[kind]) for n in names} for kind in KINDS
    }
    pairs = list(zip(runs[KINDS[1]], runs[KINDS[0]], strict=True))
    ratios = {
        n: statistics.median(ours[n] / theirs[n] for ours, theirs in pairs) for n in names[:3]
    }
    if as_json:
        print(json.dumps({"medians": medians, "ratios": ratios}))
        return
    for name in names:
        line = "  ".join(f"{kind}: {medians[kind][name]:8.2f}" for kind in KINDS)
        ratio = f"  ratio {ratios[name]:.2f}" if name in ratios else ""
        print(f"{name:28} {line}{ratio}")


if __name__ == "__main__":
    run_cli(bench)
