"""Serves a store one of whose disks is slow, and measures how late its own event loop is.

Arguments: store, number of the slow disk, seconds that each of its reads takes longer, `paged` or
`copying`. The first line that it prints is its URL; for each line on standard input it prints what
was measured since the last one, as JSON; the end of standard input ends it.

The probe is a coroutine that wants to run every millisecond. How late it is has two parts: the
time for which the kernel had other work for this core (run_delay of /proc/thread-self/schedstat;
the machine's doing), and all else: callbacks, system calls that block, other threads that hold
the interpreter (ours), but also what a hypervisor takes, which no program is told.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from vodserver.http import HttpServer
from vodserver.interpreter import settle_interpreter
from vodserver.settings import ServeSettings
from vodserver.store import open_store
from vodserver.store.disks import RealDisk

EVICT_SECONDS = 0.25
STALL_SECONDS = 0.010


class SlowDisk(RealDisk):
    """A disk whose every read takes longer."""

    def __init__(self, path, delay, paged):
        super().__init__(path)
        self._delay = delay
        self.paged = paged

    def read(self, extent, offset, length, *, direct=False):
        time.sleep(self._delay)
        return super().read(extent, offset, length, direct=direct)


class Probe:
    """How late the loop is: in all, and by its own doing."""

    def __init__(self):
        self._late = []
        self._own = []
        self._stat = Path("/proc/thread-self/schedstat").open("rb", buffering=0)  # noqa: SIM115 - open as long as the process

    def _delayed(self):
        self._stat.seek(0)
        return int(self._stat.read().split()[1]) / 1e9

    async def run(self):
        while True:
            due, delayed = time.monotonic() + 0.001, self._delayed()
            await asyncio.sleep(0.001)
            late = max(time.monotonic() - due, 0.0)
            self._late.append(late)
            self._own.append(max(late - (self._delayed() - delayed), 0.0))

    def take(self):
        late, self._late = np.array(self._late or [0.0]), []
        own, self._own = np.array(self._own or [0.0]), []
        return {
            "samples": len(own),
            "stalls": int((own > STALL_SECONDS).sum()),
            "late_max": float(late.max()),
            "late_p999": float(np.quantile(late, 0.999)),
            "own_max": float(own.max()),
            "own_p999": float(np.quantile(own, 0.999)),
        }


def evict(folder, stop):
    """Drop a disk's files from the kernel's memory again and again."""
    while not stop.wait(EVICT_SECONDS):
        for path in sorted(folder.glob("extents/*/*")):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(store_path, slow, delay, paged):
    def make_disk(path):
        return SlowDisk(path, delay, paged) if path.name == f"disk{slow}" else RealDisk(path)

    loop = asyncio.get_running_loop()
    with open_store(store_path, make_disk=make_disk) as store:
        server = HttpServer(store, ServeSettings(port=0, http_connections=200))
        await server.start()
        settle_interpreter()
        say(server.url)
        probe = Probe()
        probing = asyncio.create_task(probe.run())
        stop = threading.Event()
        evicting = threading.Thread(target=evict, args=(store.disk_paths[slow], stop))
        evicting.start()
        while await loop.run_in_executor(None, sys.stdin.readline):
            disk = store.statistics().disks[slow]
            say(json.dumps(probe.take() | {"slow_disk_reads": disk.disk_reads}))
        stop.set()
        probing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await probing
        await server.close()
        evicting.join()


if __name__ == "__main__":
    words = sys.argv
    asyncio.run(main(Path(words[1]), int(words[2]), float(words[3]), words[4] == "paged"))
