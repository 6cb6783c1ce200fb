"""The servers that are compared: both serve the same film, nginx the file, ours from a store."""

import http.client
import json
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from server.film import make_large_film
from server.nginx import configuration
from server.programs import BenchError, Program, free_port, running, wait_listening

from experiments.nginx import find_nginx
from vodserver.store import add_film, create_store, open_store
from vodserver.store.files import OpenFile

__all__ = ["Server", "check", "hold", "prepare", "run_nginx", "run_ours", "warm"]

_SERVE: Final = [sys.executable, "-P", "-m", "vodserver.cli", "serve"]
_START_SECONDS: Final = 30.0
_DISKS: Final = 4
_CHECKED_RANGES: Final = 32


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens, and the URL of the film on it."""

    program: Program
    url: str


def prepare(folder: Path, film_bytes: int) -> Path:
    """Make the film and a store that has it in a folder, unless both are there; its path."""
    film = folder / "film.mp4"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        make_large_film(film, film_bytes)
        create_store(folder / "store", [folder / f"disk{n}" for n in range(_DISKS)])
        with open_store(folder / "store") as store:
            add_film(store, film)
        (folder / "ready").touch()
    return film


@contextmanager
def run_nginx(
    name: str, directives: str, *, folder: Path, film: Path, cores: Sequence[int]
) -> Iterator[Server]:
    """Run nginx, with one worker per core, while the block lasts.

    Raises:
        BenchError: it does not start.
    """
    prefix = folder / f"nginx-{name}"
    prefix.mkdir()
    port = free_port()
    text = configuration(directives, prefix=prefix, root=film.parent, port=port, workers=len(cores))
    path = prefix / "nginx.conf"
    path.write_text(text)
    log = folder / f"nginx-{name}.log"
    command = [find_nginx(), "-p", str(prefix), "-e", str(prefix / "error.log"), "-c", str(path)]
    with running(f"nginx ({name})", command, cores=cores, log=log) as program:
        wait_listening(program, port)
        yield Server(program, f"http://127.0.0.1:{port}/{film.name}")


@contextmanager
def run_ours(
    arguments: str, *, folder: Path, store: Path, cores: Sequence[int]
) -> Iterator[Server]:
    """Run `vodserver serve` while the block lasts, with one worker per core where it has workers.

    Raises:
        BenchError: it does not start.
    """
    more = shlex.split(arguments)
    if len(cores) > 1 and "--workers" not in arguments:
        told = subprocess.run([*_SERVE, "--help"], capture_output=True, text=True, check=False)
        if "--workers" in told.stdout:
            more += ["--workers", str(len(cores))]
    log = folder / "vodserver.log"
    command = [*_SERVE, "--store", str(store), "--port", "0", "--no-seed", "--json", *more]
    with running("vodserver", command, cores=cores, log=log) as program:
        base = _wait_url(program, log)
        address = urlsplit(base)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        connection.request("GET", "/titles")
        title = json.loads(connection.getresponse().read())[0]["id"]
        connection.close()
        yield Server(program, f"{base}/titles/{title}/content")


def _wait_url(program: Program, log: Path) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        program.check()
        for line in log.read_text(errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("event") == "listening":
                return str(event["url"]).rstrip("/")
        time.sleep(0.05)
    raise BenchError("vodserver does not say that it listens")


def warm(server: Server) -> None:
    """Read the whole film from a server once, so that all of it is in memory, and checked."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("GET", address.path)
    response = connection.getresponse()
    buffer = bytearray(1 << 20)
    while response.readinto(buffer):
        pass
    connection.close()


@contextmanager
def hold(paths: Iterable[Path]) -> Iterator[None]:
    """Lock those files that are in memory while the block lasts, for all servers alike.

    A machine may take away what is cached at any time, some do so all the time (DAMON), and then
    it would be a disk that is measured.
    """
    held = []
    try:
        for path in paths:
            held.append(OpenFile(path))
            held[-1].hold()
    except OSError as error:
        print(
            f"{held[-1].size >> 20} MiB and more {error.strerror}: disks may be measured",
            file=sys.stderr,
        )
    try:
        yield
    finally:
        for file in held:
            file.let_go()


def check(server: Server, film: Path, sizes: Sequence[int]) -> None:
    """See that a server answers ranges with the film's own bytes: speed is worth nothing else.

    Raises:
        BenchError: it does not.
    """
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    rng = random.Random(2)  # noqa: S311 - which ranges is no secret
    length = film.stat().st_size
    with film.open("rb") as file:
        for number in range(_CHECKED_RANGES):
            size = sizes[number % len(sizes)]
            start = rng.randrange(length - size)
            span = f"bytes={start}-{start + size - 1}"
            connection.request("GET", address.path, headers={"Range": span})
            response = connection.getresponse()
            body = response.read()
            file.seek(start)
            if response.status != 206 or body != file.read(size):
                raise BenchError(
                    f"{server.program.name} answers {span} with status {response.status} "
                    "and other bytes than the film's"
                )
    connection.close()
