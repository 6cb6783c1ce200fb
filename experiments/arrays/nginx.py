"""nginx as a plain file server of films: how it may be set to read, and its nginx.conf."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from experiments.nginx import configuration, find_nginx

__all__ = ["BEST", "WAYS", "Way", "nginx_command"]


@dataclass(frozen=True, slots=True)
class Way:
    """One way for nginx to read files.

    Attributes:
        directives: in its `http` block.
        paged: whether it goes through the kernel's page cache.
        read_ahead: bytes that the kernel then reads ahead.
        workers: processes, where it has no threads that wait for the disks.
    """

    directives: str
    paged: bool = False
    read_ahead: int = 0
    workers: int = 1


_PROCESSES: Final = 96
_POOL: Final = "thread_pool pool threads=160 max_queue=65536;"
"""More than there are streams: none waits for a thread."""
_LONG: Final = "keepalive_requests 1000000; open_file_cache max=1024;"
_DIRECT: Final = "sendfile off; directio 512; aio threads=pool;"
WAYS: Final[Mapping[str, Way]] = {
    "sendfile": Way("sendfile on;", paged=True, read_ahead=8 << 10, workers=_PROCESSES),
    "sendfile, extent read ahead": Way(
        "sendfile on; read_ahead 1;", paged=True, read_ahead=240 << 10, workers=_PROCESSES
    ),
    "sendfile in threads": Way(
        "sendfile on; sendfile_max_chunk 240k; aio threads=pool;", paged=True, read_ahead=240 << 10
    ),
    "buffered, 2 x 2 KiB": Way("sendfile off; aio threads=pool; output_buffers 2 2k;"),
    "direct, 2 x 2 KiB": Way(f"{_DIRECT} output_buffers 2 2k;"),
    "direct, 1 x 32 KiB": Way(f"{_DIRECT} output_buffers 1 32k;"),
    "direct, 2 x 64 KiB": Way(f"{_DIRECT} output_buffers 2 64k;"),
    "direct, 1 x 120 KiB": Way(f"{_DIRECT} output_buffers 1 120k;"),
    "direct, 1 x 240 KiB": Way(f"{_DIRECT} output_buffers 1 240k;"),
    "direct, 1 x 1 MiB": Way(f"{_DIRECT} output_buffers 1 1m;"),
    "direct, 1 x 240 KiB, no threads": Way(
        "sendfile off; directio 512; output_buffers 1 240k;", workers=_PROCESSES
    ),
}
"""Those that were tried, by name. The bytes are those of the scaled array, where a stream brings 15
times fewer than in the source: 2 x 2 KiB is what nginx does by itself (2 x 32 KiB), 240 KiB is an
extent of 5 s."""

BEST: Final = "direct, 1 x 240 KiB"
"""The one that the disks do most with."""


def nginx_command(way: Way, *, prefix: Path, root: Path, host: str, port: int) -> list[str]:
    """Write an nginx.conf that touches nothing outside of a folder; the command line.

    Args:
        way: how it reads.
        prefix: a folder of its own.
        root: folder of what it serves.
        host: where it listens.
        port: likewise.

    Raises:
        LabError: it is not installed.
    """
    prefix.mkdir()
    pool = _POOL if "threads=pool" in way.directives else ""
    text = configuration(
        f"worker_processes {way.workers};\nworker_rlimit_nofile 8192;\n{pool}",
        f"types {{ }}\n  {_LONG}\n  {way.directives}",
        prefix=prefix,
        root=root,
        listen=f"{host}:{port}",
        connections=2048,
    )
    path = prefix / "nginx.conf"
    path.write_text(text, encoding="utf-8")
    program = [find_nginx(), "-p", str(prefix), "-e", str(prefix / "error.log"), "-c", str(path)]
    setpriv = shutil.which("setpriv")
    return program if setpriv is None else [setpriv, "--pdeathsig", "TERM", *program]
