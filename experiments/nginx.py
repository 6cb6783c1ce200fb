"""Where nginx is, and an nginx.conf for a file server that touches nothing outside of a folder."""

import grp
import os
import pwd
import shutil
from pathlib import Path
from typing import Final

from experiments.errors import LabError

__all__ = ["configuration", "find_nginx"]

_TEMPLATE: Final = """\
daemon off;
{user}
pid {prefix}/nginx.pid;
error_log {prefix}/error.log;
{main}
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  client_body_temp_path {prefix}/body;
  proxy_temp_path {prefix}/proxy;
  fastcgi_temp_path {prefix}/fastcgi;
  uwsgi_temp_path {prefix}/uwsgi;
  scgi_temp_path {prefix}/scgi;
  {http}
  server {{
    listen {listen};
    root {root};
  }}
}}
"""


def find_nginx() -> str:
    """The path of nginx, which is not in the search path of people other than root.

    Raises:
        LabError: it is not installed.
    """
    path = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if path is None:
        raise LabError("nginx is missing: install it (Debian: apt install nginx-light)")
    return path


def configuration(
    main: str, http: str, *, prefix: Path, root: Path, listen: str, connections: int
) -> str:
    """The text of an nginx.conf.

    Args:
        main: directives outside of all blocks: processes, pools of threads, limits.
        http: directives of the `http` block, types included.
        prefix: folder of the pid, the error log and temporary files.
        root: folder of what is served.
        listen: address, port and options of the socket.
        connections: at the most, of each process.
    """
    # Only root's workers change to another user, who could not read a folder that is root's alone.
    user = ""
    if os.geteuid() == 0:
        user = f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"
    return _TEMPLATE.format(
        user=user,
        prefix=prefix,
        main=main,
        connections=connections,
        http=http,
        listen=listen,
        root=root,
    )
