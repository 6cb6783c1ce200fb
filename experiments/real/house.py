"""What stands around the viewers of a run: a folder, addresses of its own, tracker and server."""

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import aiohttp

from experiments.accounting import OperatorBytes
from experiments.counting import get_json, operator_bytes, url_of
from experiments.errors import LabError
from experiments.processes import Child, Processes, program
from experiments.real.emulated import Places
from experiments.real.film import LabFilm, make_lab_film, store_film
from experiments.swarms.scenario import Scenario

__all__ = ["LOGS", "Net", "Operator", "run_folder"]

LOGS = "logs"
"""Where in a run's folder its programs' output goes."""

_READY_SECONDS = 30.0
_PREFIX = "toast-swarm-"
_DOOR = 54_321  # any number that no program here listens on by itself
_NETS = range(1, 250)
_OWN_HOSTS = 2
_HOSTS_OF_A_ROW = 250
_KEPT_PREFIX = "toast-failed-"
_MOST_KEPT = 5
_KEPT_BYTES = 1024 * 1024


class Net:
    """Loopback addresses that nobody else on this machine uses while this is open.

    libtorrent bans by address, and a tracker tells peers apart by it: two runs must not meet.

    Raises:
        LabError: too many runs go on.
    """

    def __init__(self) -> None:
        self._door = socket.socket()
        for self._number in _NETS:
            with contextlib.suppress(OSError):
                self._door.bind((f"127.{self._number}.255.254", _DOOR))
                return
        self._door.close()
        raise LabError("no loopback addresses are free: other runs have them all")

    @property
    def tracker_host(self) -> str:
        """Where the tracker is."""
        return f"127.{self._number}.255.1"

    @property
    def server_host(self) -> str:
        """Where the VoD server is."""
        return f"127.{self._number}.255.2"

    def viewer_host(self, number: int) -> str:
        """Where a viewer is, numbered from 0."""
        row, place = divmod(number, _HOSTS_OF_A_ROW)
        return f"127.{self._number}.{row}.{place + 1}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._door.close()


@contextmanager
def run_folder(parent: Path) -> Iterator[Path]:
    """A new folder for a run, removed with all that is in it; also what killed runs left there.

    What the programs of a run that failed had to say is kept, of the last few such runs.

    Raises:
        LabError: nothing can be written there; or what the run failed with.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(f"{_PREFIX}*-*"):
            _remove_if_left(left)
        prefix = f"{_PREFIX}{os.getpid()}-"
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).absolute()
    except OSError as error:
        raise LabError(f"nothing can be written to {parent}: {error.strerror}") from error
    try:
        yield folder
    except LabError as error:
        kept = _keep_logs(folder / LOGS)
        if kept is None:
            raise
        raise LabError(f"{error} (all that its programs said is in {kept})") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_logs(logs: Path) -> Path | None:
    """The ends of all logs, out of the way; None if there are none, or no room for them."""
    parent = Path(tempfile.gettempdir())
    try:
        paths = sorted(logs.glob("*.log"))
        if not paths:
            return None
        kept = Path(tempfile.mkdtemp(prefix=_KEPT_PREFIX, dir=parent))
        for path in paths:
            with path.open("rb") as log:
                log.seek(max(0, path.stat().st_size - _KEPT_BYTES))
                (kept / path.name).write_bytes(log.read())
        others = sorted(parent.glob(f"{_KEPT_PREFIX}*"), key=lambda each: each.stat().st_mtime)
    except OSError:
        return None
    for old in others[:-_MOST_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return kept


def _remove_if_left(folder: Path) -> None:
    """Remove a run's folder if the process that made it is no more: it may be memory."""
    pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
    if not pid.isdecimal():
        return
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        shutil.rmtree(folder, ignore_errors=True)
    except (PermissionError, OverflowError):
        return  # another user's, or no process number at all


@dataclass(frozen=True, slots=True)
class Operator:
    """Tracker and VoD server, with the film of a scenario.

    Attributes:
        film: it.
        source: URL of its title.
        tracker: the program.
        server: the program.
    """

    film: LabFilm
    source: str
    tracker: Child
    server: Child

    @classmethod
    async def start(
        cls,
        scenario: Scenario,
        processes: Processes,
        folder: Path,
        net: Net | Places,
        http: aiohttp.ClientSession,
    ) -> Self:
        """Start them; they end with the other processes.

        Raises:
            LabError: one of them does not.
        """
        film = await asyncio.to_thread(make_lab_film, scenario, folder)
        store = await asyncio.to_thread(store_film, film, folder, scenario.film.piece_bytes)
        words = [program("toast-tracker"), "serve", "--host", net.tracker_host, "--port", "0"]
        tracker = await processes.start("tracker", _tied([*words, "--json"]))
        ready = await tracker.wait_event("listening", timeout_seconds=_READY_SECONDS)
        announce = str(ready.get("announce_url") or f"{url_of(ready)}/announce")
        server = await processes.start(
            "vodserver", _tied(serve_command(scenario, store, net.server_host, announce))
        )
        ready = await server.wait_event("listening", timeout_seconds=_READY_SECONDS)
        titles = await get_json(http, f"{url_of(ready)}/titles")
        source = f"{url_of(ready)}/titles/{titles[0]['id']}"
        return cls(film, source, tracker, server)

    async def sent(self, http: aiohttp.ClientSession) -> OperatorBytes:
        """What they have sent so far, counted at their sockets.

        Raises:
            LabError: one of them does not answer.
        """
        urls = (url_of(child.event("listening")) for child in (self.tracker, self.server))
        return await operator_bytes(http, *urls)


def serve_command(scenario: Scenario, store: Path, host: str, announce: str) -> list[str]:
    """The command line of a scenario's VoD server."""
    command = [program("vodserver"), "serve", "--store", str(store), "--host", host]
    command += ["--port", "0", "--json", "--tracker", announce]
    if scenario.seed_upload_bps:
        command += ["--seed", "--seed-upload", _rate(scenario.seed_upload_bps)]
    else:
        command.append("--no-seed")
    if scenario.origin_rate_bps is not None:
        command += ["--egress", _rate(scenario.origin_rate_bps)]
    return command


def _tied(command: list[str]) -> list[str]:
    """The same program, but it ends with us even if we are killed, where the system can do that."""
    setpriv = shutil.which("setpriv")
    return command if setpriv is None else [setpriv, "--pdeathsig", "TERM", *command]


def _rate(bits_per_second: float) -> str:
    return f"{bits_per_second / 8:.3f}B/s"
