"""The real server over emulated disks: `python -m experiments.arrays.real_server STORE SPEC.json`.

As `vodserver serve --json`, but that the store's disks are `EmulatedDisk`s.
"""

import asyncio
import dataclasses
import json
import signal
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.arrays.disk import DiskModel
from experiments.arrays.emulated import EmulatedDisk, FaultFile, ReadMemory
from experiments.real.memory import stay_in_memory
from toast.common.cli import print_json
from vodserver.serve import Listening, serve
from vodserver.settings import ServeSettings
from vodserver.store import open_store
from vodserver.store.reading import ArraySettings

__all__ = ["main"]

_QUANTUM_SECONDS: Final = 1 / 24
"""At the rate of a scaled stream so many make a checksum's span. A quantum across two spans would
have an extent that is just being read read again: a disk that is not paged keeps no first part."""


def main(store: Path, spec: dict[str, Any]) -> None:
    """Serve until told to stop.

    Args:
        store: its directory.
        spec: `disks` (fields of each one's `DiskModel`), `scheduler`, `host`, `seed`,
            `memory_extents`, and `faults`, the path of a file.
    """
    stay_in_memory()
    faults = FaultFile(Path(spec["faults"]))
    models = [DiskModel(**fields) for fields in spec["disks"]]
    memory = ReadMemory(spec["memory_extents"]) if spec["memory_extents"] else None

    def make_disk(path: Path) -> EmulatedDisk:
        number = int(path.name.removeprefix("disk"))
        chance = np.random.default_rng([int(spec["seed"]), number])
        return EmulatedDisk(
            path, models[number], chance, faults=lambda: faults.of(number), memory=memory
        )

    settings = ServeSettings(
        host=spec["host"],
        port=0,
        seed=False,
        client_connections=None,
        chunk_bytes=1 << 22,
        stream_quantum_seconds=_QUANTUM_SECONDS,
    )
    # Reads are as much longer than a disk's as the rates are lower.
    reading = ArraySettings(stall_seconds=5.0, read_timeout_seconds=120.0)

    def ready(listening: Listening) -> None:
        print_json({"event": "listening", **dataclasses.asdict(listening)})

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(opened, settings, ready=ready, stop=stop)

    with open_store(
        store, make_disk=make_disk, scheduler=spec["scheduler"], reading=reading
    ) as opened:
        asyncio.run(run())


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8")))
