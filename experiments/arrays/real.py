"""Arrays for real: the server's own process over emulated disks, and paced clients over HTTP.

Rates are scaled so that the disks are the limit, and neither the cores nor the loopback: a read
takes longer, a stream brings fewer bytes, and what a seek takes of a read stays as in the source.
"""

import asyncio
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.arrays.audience import Audience, Stream
from experiments.arrays.clients import Client, PacedClient, play_streams
from experiments.arrays.playback import Playback
from experiments.arrays.result import ArrayResult
from experiments.arrays.scaling import FILM_SECONDS, SCALED, scaled
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.stock import film_name, make_store
from experiments.processes import Processes
from experiments.real.house import Net, run_folder

__all__ = ["SCALED", "Client", "RealRun", "play_streams", "run_real", "scaled"]

_READY_SECONDS: Final = 60.0
_HEAD_START_SECONDS: Final = 1.0
_BEAT_SECONDS: Final = 0.05
_UNITS_OF_EXTENT: Final = 20
"""Into so many parts the account of a client divides an extent that comes little by little."""


@dataclass(frozen=True, slots=True)
class RealRun:
    """What came of a real run.

    Attributes:
        result: its figures.
        late_p99_seconds: how late the clients' process woke, in the 99th percentile.
        late_max_seconds: at worst.
    """

    result: ArrayResult
    late_p99_seconds: float
    late_max_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        late = {
            "late_p99_seconds": round(self.late_p99_seconds, 4),
            "late_max_seconds": round(self.late_max_seconds, 4),
        }
        return {**self.result.to_dict(), **late}


async def run_real(scenario: ArrayScenario, streams: int, *, seed: int, folder: Path) -> RealRun:
    """Let so many clients play from the real server over emulated disks.

    With `admission`, clients ask for paced streams, which the server may refuse; else they ask for
    an extent at a time, which it never does.

    Args:
        scenario: see `scaled`.
        streams: how many come.
        seed: of films, placement, beginnings and access times.
        folder: where the run keeps its files; they are removed.

    Raises:
        LabError: the server did not start, or a client was not given what it asked for.
    """
    audience = Audience(scenario, seed, film_seconds=FILM_SECONDS)
    crowd = audience.streams(streams)
    with run_folder(folder) as place, Net() as net:
        await asyncio.to_thread(make_store, scenario, audience, seed, place)
        faults, spec = place / "faults.json", place / "spec.json"
        spec.write_text(
            json.dumps(
                {
                    "disks": [asdict(disk) for disk in scenario.disks],
                    "scheduler": scenario.scheduler,
                    "host": net.server_host,
                    "seed": seed,
                    "memory_extents": _memory_extents(scenario, streams),
                    "faults": str(faults),
                }
            ),
            encoding="utf-8",
        )
        module = "experiments.arrays.real_server"
        async with Processes(place / "logs") as processes:
            server = await processes.start(
                "server", [sys.executable, "-m", module, str(place / "store"), str(spec)]
            )
            ready = await server.wait_event("listening", timeout_seconds=_READY_SECONDS)
            clients = [_client(scenario, stream, str(ready["url"])) for stream in crowd]
            start = time.monotonic() + _HEAD_START_SECONDS
            late: list[float] = []
            beside = [
                asyncio.create_task(_switch_faults(scenario, start, faults)),
                asyncio.create_task(_beat(late)),
            ]
            try:
                result = await play_streams(
                    clients,
                    [stream.begins_seconds for stream in crowd],
                    start=start,
                    hold_seconds=scenario.hold_seconds,
                    model_streams=scenario.model_streams,
                )
            finally:
                for task in beside:
                    task.cancel()
            return RealRun(result, float(np.quantile(late, 0.99)), max(late))


def _memory_extents(scenario: ArrayScenario, streams: int) -> int:
    """What the disks' memory holds; what goes out little by little must stay until it has."""
    return 2 * streams if scenario.admission else scenario.cache_bytes // scenario.unit_bytes


def _client(scenario: ArrayScenario, stream: Stream, url: str) -> Client:
    title = f"{url}/titles/{film_name(stream.film)}"
    units = None
    if scenario.watch_seconds is not None:
        units = max(1, round(scenario.watch_seconds / scenario.extent_seconds))
    if not scenario.admission:
        playback = Playback(scenario.lead_seconds, scenario.extent_seconds, units)
        extents = len(stream.extents)
        return Client(f"{title}/content", playback, scenario.unit_bytes, extents)
    parts = _UNITS_OF_EXTENT
    playback = Playback(
        scenario.lead_seconds,
        scenario.extent_seconds / parts,
        None if units is None else units * parts,
    )
    return PacedClient(f"{title}/stream", playback, scenario.unit_bytes // parts)


async def _switch_faults(scenario: ArrayScenario, start: float, path: Path) -> None:
    """Keep the file of faults as the scenario has it, from `start` on."""
    times = {0.0}
    for fault in scenario.faults:
        times |= {fault.begin_seconds, fault.end_seconds}
    for at in sorted(filter(math.isfinite, times)):
        await asyncio.sleep(max(start + at - time.monotonic(), 0.0))
        rows = [
            {"disk": fault.disk, "kind": str(fault.kind), "share": fault.share}
            for fault in scenario.faults
            if fault.is_on(at)
        ]
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(rows), encoding="utf-8")
        fresh.replace(path)


async def _beat(late: list[float]) -> None:
    """Note how late this process wakes: on a machine that is too busy, a run says little."""
    late.append(0.0)
    while True:
        due = time.monotonic() + _BEAT_SECONDS
        await asyncio.sleep(_BEAT_SECONDS)
        late.append(time.monotonic() - due)
