"""A film behind our real server, and behind a real nginx, for clients that are not ours."""

import contextlib
import http.client
import shutil
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.film import FilmSpec, make_film
from tests.conformance.check_ranges import Answer, Ask
from tests.interop.conftest import Programs, get_json
from vodserver.store import add_film, create_store, open_store

BIG_FILM = FilmSpec(
    duration_seconds=12.0, bit_rate=1_000_000.0, width=160, height=90, faststart=False
)


@dataclass(frozen=True)
class FilmServer:
    """Our server with one film.

    Attributes:
        url: where it is.
        film: what it serves.
        content_url: the film's own URL.
        pid: the server's process.
    """

    url: str
    film: Path
    content_url: str
    pid: int

    @property
    def address(self):
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    @property
    def path(self):
        return urllib.parse.urlsplit(self.content_url).path

    def status(self):
        return get_json(f"{self.url}/status")

    def rss_bytes(self):
        """The server's resident memory."""
        with Path(f"/proc/{self.pid}/smaps_rollup").open() as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))


@contextlib.contextmanager
def film_server(folder: Path, film: Path, *options) -> Iterator[FilmServer]:
    """`vodserver serve` in a process of its own, with one film on three disks and no seed."""
    create_store(folder / "store", [folder / f"disk-{n}" for n in range(3)])
    with open_store(folder / "store") as opened:
        title = add_film(opened, film, rng=np.random.default_rng(5))
    programs = Programs(folder)
    try:
        words = ("--store", folder / "store", "--port", "0", "--no-seed", "--json", *options)
        ready = programs.start_server("vodserver", *words)
        (process, _), *_ = programs.running
        content = get_json(f"{ready['url']}/titles/{title.id}")["content"]
        yield FilmServer(ready["url"], film, content, process.pid)
    finally:
        programs.stop_all()


def big_film(tmp_path_factory) -> Path:
    """12 s at 1 MB/s with the index behind the media, so that players jump; made once per run."""
    path = tmp_path_factory.getbasetemp() / "big.mp4"
    if not path.exists():
        make_film(path, BIG_FILM)
    return path


def padded(film: Path, target: Path, multiple: int) -> Path:
    """A copy of an MP4 whose size is a multiple: a `free` box at its end says nothing."""
    data = film.read_bytes()
    room = -len(data) % multiple
    room += multiple if room < 8 else 0
    target.write_bytes(data + room.to_bytes(4) + b"free" + bytes(room - 8))
    return target


def ask_over(connect, paths: dict[str, str]) -> Ask:
    """Asks by Python's own HTTP client, one connection for each question."""

    def ask(place, method, fields):
        with contextlib.closing(connect()) as connection:
            connection.putrequest(method, paths[place], skip_accept_encoding=True)
            for name, value in fields:
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            headers = {}
            for name, value in response.getheaders():
                assert name.lower() not in headers, f"{name} twice"
                headers[name.lower()] = value
            return Answer(response.status, headers, response.read())

    return ask


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket: nginx cannot take "any free port", but any path."""

    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


_NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; default_type video/mp4; types {{}}
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen unix:{folder}/socket; root {folder}/root;
    location /undated {{ add_header Last-Modified ""; }}
    location /dated {{ add_header Last-Modified "Mon, 28 Sep 1970 06:00:00 GMT"; }}
    location /most-2 {{ max_ranges 2; }}
    location /most-0 {{ max_ranges 0; }}
  }}
}}
"""


def nginx_version() -> str | None:
    """What nginx says that it is, or None if there is none."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        return None
    done = subprocess.run([program, "-v"], capture_output=True, text=True, check=True)
    return done.stderr.rpartition("/")[2].strip()


@contextlib.contextmanager
def nginx(folder: Path, film: Path):
    """A real nginx with the same film in all the places that the tables speak of: (ask, films)."""
    root = folder / "root"
    root.mkdir(parents=True)
    names = ("film", "undated", "dated", "most-2", "most-0")
    for name in names:
        (root / name).hardlink_to(film)
    (root / "empty").touch()
    (folder / "conf").write_text(_NGINX.format(folder=folder))
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    process = subprocess.Popen([program, "-c", folder / "conf"], stderr=subprocess.DEVNULL)
    path = folder / "socket"
    try:
        deadline = time.monotonic() + 10
        while not path.exists():
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        films = dict.fromkeys(names, film.read_bytes()) | {"empty": b""}
        paths = {name: f"/{name}" for name in films}
        yield ask_over(lambda: _UnixConnection(str(path)), paths), films
    finally:
        process.terminate()
        process.wait(10)
