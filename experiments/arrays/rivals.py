"""The servers that are compared over the same emulated disks: ours, and nginx in several ways."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from experiments.arrays.disk import Fault
from experiments.arrays.library import Library
from experiments.arrays.mounted import MountSpec, film_name, mounted_command, write_spec
from experiments.arrays.nginx import BEST, WAYS, Way, nginx_command
from experiments.arrays.scenario import ArrayScenario
from experiments.processes import Child, Processes
from experiments.real.house import Net

__all__ = ["RIVALS", "Rival", "Serving", "cpu_seconds", "serving"]

_PORT: Final = 8080  # of an address that no other run has
_READY_SECONDS: Final = 60.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A server, and how it uses the disks."""

    way: str | None = BEST
    """How nginx reads, one of `WAYS`; None: it is our server."""

    unit: int | None = None
    """nginx's stripe unit, bytes; None: one film per disk."""

    order: str = "fifo"
    """Of the reads that wait for a disk of nginx's."""

    joins: bool = False
    """Whether nginx's reads of the same bytes at the same time are made once, as ours are."""


RIVALS: Final[Mapping[str, Rival]] = {
    "toast": Rival(way=None),
    "film per disk": Rival(),
    "film per disk, shared reads": Rival(joins=True),
    "raid0 of 32 KiB": Rival(unit=32 << 10),
    "raid0 of extents": Rival(unit=240 << 10),
    "raid0 of extents, shared reads": Rival(unit=240 << 10, joins=True),
}
"""By name; all but the first are nginx. 32 KiB in the scaled array are 0.5 MiB in the source's."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that runs.

    Attributes:
        url: of a film, by its number.
        child: its process; more may have come of it, in the same session.
    """

    url: Callable[[int], str]
    child: Child


@asynccontextmanager
async def serving(
    rival: Rival,
    scenario: ArrayScenario,
    library: Library,
    *,
    seed: int,
    faults: Sequence[Fault],
    place: Path,
    net: Net,
) -> AsyncIterator[Serving]:
    """Run a server while the block lasts.

    Args:
        rival: which.
        scenario: its disks.
        library: its films.
        seed: of access times.
        faults: of its disks.
        place: a folder for the run.
        net: addresses for it.

    Raises:
        LabError: it does not start.
    """
    spec, switched = place / "spec.json", place / "faults.json"
    rows = [{"disk": f.disk, "kind": str(f.kind), "share": f.share} for f in faults]
    switched.write_text(json.dumps(rows), encoding="utf-8")
    if rival.way is None:
        told: dict[str, Any] = {
            "disks": [asdict(disk) for disk in scenario.disks],
            "scheduler": scenario.scheduler,
            "host": net.server_host,
            "seed": seed,
            "memory_extents": 0,
            "faults": str(switched),
        }
        spec.write_text(json.dumps(told), encoding="utf-8")
        module = "experiments.arrays.real_server"
        name, command = "vodserver", [sys.executable, "-m", module, str(library.store), str(spec)]
        path = "titles/film-{}/content"
    else:
        mounted = MountSpec(
            disk=asdict(scenario.disks[0]),
            disks=len(scenario.disks),
            films=str(library.films),
            faults=str(switched),
            seed=seed,
            unit=rival.unit,
            order=rival.order,
            joins=rival.joins,
            **_nginx(WAYS[rival.way], place, net.server_host),
        )
        write_spec(spec, mounted)
        name, command = "nginx", mounted_command(spec)
        path = film_name("{}")
    async with Processes(place / "logs") as processes:
        child = await processes.start(name, command)
        ready = await child.wait_event("listening", timeout_seconds=_READY_SECONDS)
        base = str(ready["url"]).rstrip("/")
        yield Serving(lambda film: f"{base}/{path.format(film)}", child)


def _nginx(way: Way, place: Path, host: str) -> dict[str, Any]:
    """What a mount has to know of the nginx that reads from it."""
    mount = place / "mount"
    mount.mkdir()
    return {
        "mount": str(mount),
        "command": nginx_command(way, prefix=place / "nginx", root=mount, host=host, port=_PORT),
        "host": host,
        "port": _PORT,
        "paged": way.paged,
        "read_ahead": way.read_ahead,
    }


def cpu_seconds(session: int) -> float:
    """What the processes of a session have computed so far, in user and kernel mode (proc(5))."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError):  # it has ended meanwhile
            stat = (entry / "stat").read_text()
            fields = stat[stat.rindex(")") + 2 :].split()
            if int(fields[3]) == session:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS
