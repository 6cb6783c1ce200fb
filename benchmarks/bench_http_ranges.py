"""Ranges per second of the VoD server: asyncio's loop against uvloop, interleaved.

Serves a real store (its films in the page cache) from one process and reads random ranges over
kept-alive connections from another; the rounds of the two loops alternate, so that what else the
machine does hits both. Prints one line per size and the ratio.

    python benchmarks/bench_http_ranges.py [--seconds 2] [--rounds 3] [--connections 8]
"""

import argparse
import json
import multiprocessing
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from experiments.film import FilmSpec, make_film
from vodserver.store import add_film, create_store, open_store

LOOPS = ("asyncio", "uvloop")
SIZES = (64 * 1024, 1024 * 1024)

_SERVE = """
import asyncio, sys
from pathlib import Path
import uvloop
from vodserver.serve import serve
from vodserver.settings import ServeSettings
from vodserver.store import open_store

async def main(store):
    def ready(listening):
        print(listening.url, flush=True)
    settings = ServeSettings(port=0, seed=False)
    await serve(store, settings, ready=ready, stop=asyncio.Event())

factory = uvloop.new_event_loop if sys.argv[1] == "uvloop" else asyncio.new_event_loop
with open_store(Path(sys.argv[2])) as store, asyncio.Runner(loop_factory=factory) as runner:
    runner.run(main(store))
"""


def read_ranges(address: tuple[str, int], path: str, film: int, size: int, until: float) -> int:
    """Read random ranges over one connection until then; how many."""
    done = 0
    rng = random.Random(os.getpid() + size)  # noqa: S311 - which bytes is no secret
    with socket.create_connection(address) as connection:
        buffer = bytearray(1 << 20)
        while time.monotonic() < until:
            start = rng.randrange(0, film - size)
            span = f"bytes={start}-{start + size - 1}"
            request = f"GET {path} HTTP/1.1\r\nHost: x\r\nRange: {span}\r\n\r\n"
            connection.sendall(request.encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            left = size - (len(head) - head.index(b"\r\n\r\n") - 4)
            while left > 0:
                left -= connection.recv_into(buffer, min(left, len(buffer)))
            done += 1
    return done


def load(
    address: tuple[str, int], path: str, film: int, size: int, *, seconds: float, connections: int
) -> float:
    """Ranges per second over several connections, from one other process's threads."""
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(connections) as pool:
        jobs = [
            pool.submit(read_ranges, address, path, film, size, until) for _ in range(connections)
        ]
        return sum(job.result() for job in jobs) / seconds


def measure(loop: str, store: Path, size: int, options: argparse.Namespace) -> float:
    """One round: start a server on this loop, load it, stop it."""
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVE, loop, str(store)], stdout=subprocess.PIPE, text=True
    )
    try:
        url = urlsplit(server.stdout.readline().strip())
        address = (url.hostname, url.port)
        film = options.film_bytes
        path = f"/titles/{options.title}/content"
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(
                load,
                (address, path, film, size),
                {"seconds": 0.5, "connections": options.connections},
            )  # warm
            return pool.apply(
                load,
                (address, path, film, size),
                {"seconds": options.seconds, "connections": options.connections},
            )
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = make_film(folder / "film.mp4", FilmSpec(duration_seconds=10.0, bit_rate=2_000_000.0))
        create_store(folder / "store", [folder / f"disk{n}" for n in range(4)])
        with open_store(folder / "store") as store:
            title = add_film(store, film)
        options.title, options.film_bytes = title.id, title.film_bytes
        for size in SIZES:
            rates: dict[str, list[float]] = {loop: [] for loop in LOOPS}
            for _ in range(options.rounds):
                for loop in LOOPS:
                    rates[loop].append(measure(loop, folder / "store", size, options))
            mean = {loop: statistics.median(rates[loop]) for loop in LOOPS}
            print(
                json.dumps(
                    {
                        "range_bytes": size,
                        **{f"{loop}_ranges_per_second": round(mean[loop]) for loop in LOOPS},
                        **{
                            f"{name}_MB_per_second": round(rate * size / 1e6)
                            for name, rate in mean.items()
                        },
                        "uvloop_over_asyncio": round(mean["uvloop"] / mean["asyncio"], 3),
                    }
                )
            )


if __name__ == "__main__":
    main()
