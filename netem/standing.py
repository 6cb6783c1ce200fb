"""Networks that outlive the command that made them: `toast-netem up`, `exec`, `measure` and `down`.

Each has one file, NAME.events, in a folder for what a machine forgets when it is switched off. It
is what the keeper prints, and the keeper holds a lock on it: it is locked for as long as the
network is up, and by nobody afterwards, whatever ended the keeper. So a stale file deceives
nobody.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from netem.backends import Backend
from netem.errors import NetemError
from netem.spec import NetworkSpec
from netem.stale import sweep
from netem.topology import Topology

__all__ = ["Standing", "bring_up", "default_folder", "find", "take_down"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")
_UP_SECONDS: Final = 90.0
_DOWN_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Standing:
    """A network that is up.

    Attributes:
        topology: what runs.
        pid: of its keeper.
        facts: what its keeper said when it was up.
    """

    topology: Topology
    pid: int
    facts: dict[str, Any]

    def address(self, host: str) -> str:
        """The IPv4 address of a host.

        Raises:
            NetemError: there is no such host.
        """
        return str(self._host(host)["address"])

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        """What to start to run a command in a host.

        Raises:
            NetemError: there is no such host.
        """
        return [*self._host(host)["enter"], "0", *command]

    def _host(self, name: str) -> dict[str, Any]:
        hosts: dict[str, dict[str, Any]] = self.facts["hosts"]
        if name not in hosts:
            raise NetemError(f"there is no host '{name}'; there are {', '.join(hosts)}")
        return hosts[name]


def default_folder() -> Path:
    """Where networks are noted: the user's runtime folder, or the machine's."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/run") / "toast-netem"


def bring_up(folder: Path, name: str, backend: Backend, spec: NetworkSpec) -> Standing:
    """Make a network that stays until `take_down`.

    Raises:
        NetemError: one of that name is up already, or it cannot be made.
    """
    path = _path(folder, name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NetemError(f"{path} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NetemError(
                f"a network '{name}' is up: end it with 'toast-netem down --name {name}'"
            ) from error
        os.ftruncate(descriptor, 0)
        keeper = _start(backend.keeper, spec.to_json().encode() + b"\n", descriptor)
    finally:
        os.close(descriptor)
    try:
        return _wait_up(path)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)
        _reap(keeper)
        path.unlink(missing_ok=True)
        raise


def _start(command: Sequence[str], line: bytes, output: int) -> int:
    """Start a program that outlives us, hence not as a `Popen`; returns its process id."""
    reading, writing = os.pipe()
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, output, 1)],
            setsid=True,
        )
    finally:
        os.close(reading)
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:
            pipe.write(line)


def _reap(keeper: int) -> None:
    with contextlib.suppress(ChildProcessError):  # another process has started it
        os.waitpid(keeper, 0)


def _wait_up(path: Path) -> Standing:
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until:
        ended = not _is_locked(path)  # looked at first: its last words are then all there
        standing = _read(path)
        if isinstance(standing, Standing):
            return standing
        if standing is not None:
            raise NetemError(f"the network cannot be made: {standing}")
        if ended:
            raise NetemError("the network cannot be made: its keeper died")
        time.sleep(_LOOK_SECONDS)
    raise NetemError(f"the network was not up within {_UP_SECONDS:g} s")


def find(folder: Path, name: str) -> Standing:
    """A network that is up.

    Raises:
        NetemError: there is none of that name.
    """
    path = _path(folder, name)
    standing = _read(path) if _is_locked(path) else None
    if not isinstance(standing, Standing):
        raise NetemError(f"no network '{name}' is up: make one with 'toast-netem up FILE'")
    return standing


def take_down(folder: Path, name: str) -> dict[str, Any]:
    """End a network and everything that runs in it.

    Returns:
        Its keeper's report; empty if the keeper had been killed.

    Raises:
        NetemError: there is none of that name, or it does not end.
    """
    path = _path(folder, name)
    if not path.exists():
        raise NetemError(f"no network '{name}' is up")
    until = time.monotonic() + _DOWN_SECONDS
    while _is_locked(path):
        # It says who it is before it makes anything; only a keeper has the lock, so it is that one.
        keeper = next((e for e in _events(path) if e["event"] == "keeper"), None)
        if keeper is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper["pid"], signal.SIGTERM)
        if time.monotonic() > until:
            raise NetemError(f"the network '{name}' does not end: kill its keeper, see {path}")
        time.sleep(_LOOK_SECONDS)
    for event in _events(path):
        if event["event"] == "keeper":
            _reap(event["pid"])
    report = next((event for event in _events(path) if event["event"] == "report"), {})
    if not report:  # it was killed: its programs may still run
        sweep()
    path.unlink(missing_ok=True)
    report.pop("event", None)
    return report


def _path(folder: Path, name: str) -> Path:
    if not _NAME.match(name):
        raise NetemError(f"'{name}' is no name: write lower-case letters, digits and hyphens")
    return folder / f"{name}.events"


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NetemError(f"{path} cannot be read: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _events(path: Path) -> list[dict[str, Any]]:
    with contextlib.suppress(FileNotFoundError):
        text = path.read_text(encoding="utf-8")
        # The last line may be half written.
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return []


def _read(path: Path) -> Standing | str | None:
    """The network if it is up, why it cannot be, or None if that is not known yet."""
    events = {event["event"]: event for event in _events(path)}
    if "failed" in events:
        return str(events["failed"]["reason"])
    if "up" not in events:
        return None
    spec = NetworkSpec.from_json(json.dumps(events["keeper"]["spec"]))
    return Standing(spec.topology, int(events["keeper"]["pid"]), events["up"])
