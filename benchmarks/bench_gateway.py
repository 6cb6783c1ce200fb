"""One stream of a full store through the gateway, beside a plain file server and a bare socket.

`toast watch --behaviour seeding --gateway` has a whole film on its disk (in the page cache) and
gives it to one reader: every byte goes the viewer's way, hashed before it is sent. Beside it
aiohttp's file server (which has the kernel send the file, unread and unverified), and a bare
socket with sendfile(2). The rounds of the three alternate, so that what else the machine does hits
all. Printed are medians of the rates, and of the CPU time that a gigabyte costs the sender.

    python benchmarks/bench_gateway.py [--film-bytes 256MiB] [--piece-bytes 1MiB] [--rounds 5]
"""

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import click
import libtorrent as lt
import numpy as np
from server.programs import BenchError, Program

from toast.common.cli import SIZE, run_cli
from toast.common.timemap import TimeMap
from toast.common.units import format_bytes

NAMES = ("gateway", "aiohttp", "socket")

_AIOHTTP = """
import sys
from aiohttp import web
async def film(request):
    return web.FileResponse(sys.argv[1])
async def tell(application):
    pass
application = web.Application()
application.router.add_get("/film.mp4", film)
import asyncio
async def main():
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/film.mp4", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""

_SOCKET = """
import os, socket, sys
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/film.mp4", flush=True)
    size = os.path.getsize(sys.argv[1])
    while True:
        connection, _ = listening.accept()
        with connection, open(sys.argv[1], "rb") as film:
            connection.recv(65536)
            connection.sendall(f"HTTP/1.1 200 OK\\r\\nContent-Length: {size}\\r\\n\\r\\n".encode())
            connection.sendfile(film)
"""


def make_film(folder: Path, film_bytes: int, piece_bytes: int) -> Path:
    """Random bytes as folder/films/film.mp4, and their .torrent, which names no one reachable."""
    film = folder / "films" / "film.mp4"
    film.parent.mkdir()
    rng = np.random.default_rng(1)
    with film.open("wb") as file:
        for at in range(0, film_bytes, 1 << 24):
            file.write(rng.bytes(min(1 << 24, film_bytes - at)))
    storage = lt.file_storage()
    lt.add_files(storage, str(film))
    maker = lt.create_torrent(storage, piece_bytes, lt.create_torrent.v1_only)
    maker.add_tracker("http://127.0.0.1:1/announce", 0)
    lt.set_piece_hashes(maker, str(film.parent))
    torrent = maker.generate()
    torrent[b"toast"] = TimeMap.constant(film_bytes, 3600.0).to_bencodable()
    (folder / "film.torrent").write_bytes(lt.bencode(torrent))
    return film


@contextmanager
def started(name: str, folder: Path, film: Path) -> Iterator[tuple[Program, str]]:
    """One of the three as a process, and the URL of the film there."""
    command = {
        "gateway": [
            str(Path(sys.executable).with_name("toast")),
            *("watch", str(folder / "film.torrent"), "--folder", str(film.parent)),
            *("--listen", "127.0.0.1", "--behaviour", "seeding", "--gateway", "--json"),
        ],
        "aiohttp": [sys.executable, "-c", _AIOHTTP, str(film)],
        "socket": [sys.executable, "-c", _SOCKET, str(film)],
    }[name]
    log = folder / f"{name}.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            yield Program(name, process, log), _url(name, process)
        finally:
            process.kill()


def _url(name: str, process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if name != "gateway":
            return line.decode().strip()
        event = json.loads(line)
        if event["event"] == "gateway":
            return str(event["url"])
    raise BenchError(f"{name} did not start")


def read_film(url: str, film_bytes: int) -> float:
    """Read the whole film over one connection; the seconds that it took."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    buffer = bytearray(1 << 20)
    begun = time.monotonic()
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(4096)
        if not head.startswith(b"HTTP/1.1 200"):
            raise BenchError(f"{url}: {head[:80]!r}")
        left = film_bytes - len(head.partition(b"\r\n\r\n")[2])
        while left:
            taken = connection.recv_into(buffer)
            if not taken:
                raise BenchError(f"{url} ended {left} bytes early")
            left -= taken
    return time.monotonic() - begun


@click.command(name="bench_gateway")
@click.option("--film-bytes", type=SIZE, default=256 << 20, help="Of the film.  [default: 256 MiB]")
@click.option("--piece-bytes", type=SIZE, default=1 << 20, help="Of a piece.  [default: 1 MiB]")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON with the figures.")
def bench(film_bytes: int, piece_bytes: int, rounds: int, as_json: bool) -> None:
    """Measure one stream through the gateway, a plain file server and a bare socket.

    \b
    Example:
      python benchmarks/bench_gateway.py --rounds 9
    """
    rates: dict[str, list[float]] = {name: [] for name in NAMES}
    costs: dict[str, list[float]] = {name: [] for name in NAMES}
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="toast-bench-")))
        film = make_film(folder, film_bytes, piece_bytes)
        running = {name: cleanup.enter_context(started(name, folder, film)) for name in NAMES}
        for _, url in running.values():
            read_film(url, film_bytes)
        for _ in range(rounds):
            for name, (program, url) in running.items():
                program.check()
                before = program.cpu_seconds()
                rates[name].append(film_bytes / read_film(url, film_bytes))
                costs[name].append((program.cpu_seconds() - before) / film_bytes * 1e9)
    figures: dict[str, float] = {"film_bytes": film_bytes, "piece_bytes": piece_bytes}
    for name in NAMES:
        figures[f"{name}_gbps_p50"] = round(statistics.median(rates[name]) * 8e-9, 3)
        figures[f"{name}_gbps_min"] = round(min(rates[name]) * 8e-9, 3)
        figures[f"{name}_cpu_seconds_per_gb_p50"] = round(statistics.median(costs[name]), 3)
    if as_json:
        print(json.dumps(figures))
        return
    print(f"{format_bytes(film_bytes)} in pieces of {format_bytes(piece_bytes)}, {rounds} rounds")
    print(f"{'':10}{'median':>10}{'slowest':>10}{'CPU':>12}")
    for name in NAMES:
        gbps, slowest, cost = (
            figures[f"{name}_{what}"] for what in ("gbps_p50", "gbps_min", "cpu_seconds_per_gb_p50")
        )
        print(f"{name:10}{gbps:7.2f} Gb/s{slowest:5.2f} Gb/s{cost:7.2f} s/GB")


if __name__ == "__main__":
    run_cli(bench)
