"""nginx as the baseline: its configurations, and one that runs in a folder of its own."""

import grp
import os
import pwd
import shutil
from pathlib import Path
from typing import Final

from server.programs import BenchError

__all__ = ["CONFIGURATIONS", "configuration", "find_nginx"]

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

_TEMPLATE: Final = """\
daemon off;
{user}
worker_processes {workers};
pid {prefix}/nginx.pid;
error_log {prefix}/error.log;
thread_pool pool threads={threads} max_queue=65536;
worker_rlimit_nofile 65536;
events {{ worker_connections 8192; }}
http {{
  types {{ video/mp4 mp4; }}
  access_log off;
  client_body_temp_path {prefix}/body;
  proxy_temp_path {prefix}/proxy;
  fastcgi_temp_path {prefix}/fastcgi;
  uwsgi_temp_path {prefix}/uwsgi;
  scgi_temp_path {prefix}/scgi;
  {directives}
  server {{
    listen 127.0.0.1:{port}{listen};
    root {root};
  }}
}}
"""


def find_nginx() -> str:
    """The path of nginx, which is not in the search path of people other than root.

    Raises:
        BenchError: it is not installed.
    """
    path = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if path is None:
        raise BenchError("nginx is missing: install it (Debian: apt install nginx-light)")
    return path


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
    listen = ""
    if directives.startswith("listen:"):
        options, _, directives = directives.removeprefix("listen:").partition(";")
        listen = f" {options.strip()}"
    # Only root's workers change to another user, who could not read a folder that is root's alone.
    user = ""
    if os.geteuid() == 0:
        user = f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"
    return _TEMPLATE.format(
        user=user,
        prefix=prefix,
        root=root,
        port=port,
        workers=workers,
        threads=threads,
        listen=listen,
        directives=directives,
    )
