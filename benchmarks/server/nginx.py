"""nginx as the baseline: its configurations, and one that runs in a folder of its own."""

from pathlib import Path
from typing import Final

from experiments import nginx

__all__ = ["CONFIGURATIONS", "configuration"]

_LONG: Final = "keepalive_requests 1000000; open_file_cache max=16;"

CONFIGURATIONS: Final = {
    "default": "sendfile on;",
    "debian": "sendfile on; tcp_nopush on;",
    "threads": f"sendfile on; sendfile_max_chunk 512k; aio threads=pool; {_LONG}",
    "best": f"listen: sndbuf=256k; sendfile on; {_LONG}",
}
"""What goes into the `http` block, by the name that stands in tables.

default: sendfile, and else what nginx does when it is told nothing.
debian: what Debian's nginx.conf says about sending; it can stall for 40 ms.
threads: what is advised for large files; its threads pay off when the disk is read.
best: the fastest that we found for ranges of cached films (docs/benchmarks.md): with a small send
    buffer few pages are under way at a time.
"""


def configuration(
    directives: str, *, prefix: Path, root: Path, port: int, workers: int, threads: int = 4
) -> str:
    """The text of an nginx.conf that touches nothing outside of a folder.

    Args:
        directives: what goes into the `http` block; `listen` options such as `reuseport` may stand
            in front of them as `listen: reuseport;`.
        prefix: folder of the pid, the error log and temporary files.
        root: folder of what is served.
        port: of loopback.
        workers: processes.
        threads: of the pool that `aio threads=pool` uses, in each process.
    """
    options = ""
    if directives.startswith("listen:"):
        options, _, directives = directives.removeprefix("listen:").partition(";")
    pool = f"thread_pool pool threads={threads} max_queue=65536;"
    return nginx.configuration(
        f"worker_processes {workers};\n{pool}\nworker_rlimit_nofile 65536;",
        f"types {{ video/mp4 mp4; }}\n  {directives}",
        prefix=prefix,
        root=root,
        listen=f"127.0.0.1:{port} {options.strip()}".rstrip(),
        connections=8192,
    )
