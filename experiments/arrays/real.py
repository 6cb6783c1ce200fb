"""Arrays for real: the server's own process over emulated disks, and paced clients over HTTP.

Rates are scaled so that the disks are the limit, and neither the cores nor the loopback: a read
takes longer, a stream brings fewer bytes, and what a seek takes of a read stays as in the source.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from experiments.arrays.clients import Client, play_streams
from experiments.arrays.disk import SATA_1, DiskModel, Fault
from experiments.arrays.playback import Playback
from experiments.arrays.result import ArrayResult
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.errors import LabError
from experiments.processes import Processes
from experiments.real.house import Net, run_folder
from toast.common.errors import ToastError
from toast.common.timemap import TimeMap
from toast.media.probe import MediaInfo
from vodserver.store import add_film, create_store, open_store

__all__ = ["SCALED", "Client", "play_streams", "run_real", "scaled"]

_SLOWER: Final = 10 / 3
"""How much longer a read takes than on the source's disks."""
_RATE: Final = 49_152.0
"""r_c, bytes per second: an extent of 5 s is a whole number of BitTorrent's blocks."""
_READY_SECONDS: Final = 60.0


def scaled(disks: int) -> ArrayScenario:
    """The source's array with so many disks, scaled: a quarter of a second for a read."""
    thinner = 6e6 / 8 / _RATE
    disk = DiskModel(
        access_seconds=SATA_1.access_seconds * _SLOWER, rate=SATA_1.rate / thinner / _SLOWER
    )
    return ArrayScenario(
        disks=(disk,) * disks,
        stream_rate=_RATE,
        scheduler="lazy",
        hold_seconds=60.0,
        load=Load(window_seconds=5.0),
    )


SCALED: Final = scaled(2)


async def run_real(
    scenario: ArrayScenario, streams: int, *, seed: int, folder: Path, faults: Sequence[Fault] = ()
) -> ArrayResult:
    """Let so many clients play from the real server over emulated disks.

    Args:
        scenario: see `scaled`; every stream plays a film of its own.
        streams: how many.
        seed: of films, placement, beginnings and access times.
        folder: where the run keeps its files; they are removed.
        faults: switched on when the first stream begins.

    Raises:
        LabError: the server did not start, or a client was not given what it asked for.
    """
    with run_folder(folder) as place, Net() as net:
        extent_bytes = await asyncio.to_thread(_make_store, scenario, streams, seed, place)
        spec = place / "spec.json"
        spec.write_text(
            json.dumps(
                {
                    "disk": asdict(scenario.disks[0]),
                    "scheduler": scenario.scheduler,
                    "host": net.server_host,
                    "seed": seed,
                    "faults": str(place / "faults.json"),
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
            rows = [{"disk": f.disk, "kind": str(f.kind), "share": f.share} for f in faults]
            (place / "faults.json").write_text(json.dumps(rows), encoding="utf-8")
            return await _play(scenario, streams, seed, str(ready["url"]), extent_bytes)


async def _play(
    scenario: ArrayScenario, streams: int, seed: int, url: str, extent_bytes: int
) -> ArrayResult:
    chance = np.random.default_rng([seed, 9])
    begins = chance.uniform(0, scenario.load.window_seconds, streams)
    clients = [
        Client(
            f"{url}/titles/film-{n}/content",
            Playback(scenario.lead_seconds, scenario.extent_seconds),
            extent_bytes,
        )
        for n in range(streams)
    ]
    return await play_streams(
        clients,
        begins.tolist(),
        hold_seconds=scenario.hold_seconds,
        model_streams=scenario.model_streams,
    )


def _make_store(scenario: ArrayScenario, streams: int, seed: int, place: Path) -> int:
    """A store of so many films of noise; the size of an extent."""
    seconds = scenario.load.window_seconds + scenario.hold_seconds + 6 * scenario.extent_seconds
    extents = int(seconds / scenario.extent_seconds) + 1
    piece = scenario.unit_bytes  # a piece is an extent, and so exactly as long as it should be
    size = extents * piece
    duration = extents * scenario.extent_seconds
    media = MediaInfo("raw", duration, "noise", None, 0, 0, None, TimeMap.constant(size, duration))
    rng = np.random.default_rng([seed, 8])
    try:
        disks = [place / f"disk{n}" for n in range(len(scenario.disks))]
        create_store(place / "store", disks, allocation=scenario.allocation)
        with open_store(place / "store") as store:
            for number in range(streams):
                film = place / "film.bin"
                film.write_bytes(rng.bytes(size))
                title = add_film(
                    store, film, name=f"film-{number}", media=media, piece_bytes=piece, rng=rng
                )
                if title.extent_bytes != piece:
                    raise LabError(f"extents are of {title.extent_bytes} bytes, not {piece}")
        film.unlink()
    except (OSError, ToastError) as error:
        raise LabError(f"the films do not go into a store: {error}") from error
    return piece
