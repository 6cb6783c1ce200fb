"""The load: random ranges of a film, aligned to 16 KiB, asked for on kept-alive connections."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from server.programs import BenchError, Program, on_cores

__all__ = ["SCRIPT", "Run", "find_wrk", "measure", "parse"]

_DRAIN: Final = Path(__file__).with_name("drain.py")
_HEADER_BYTES: Final = 2048  # more than any server's response header has

# wrk runs setup() in one Lua state, and the rest in one per thread. Requests are made beforehand,
# so that making them costs no time; a linear congruential generator (Park and Miller, 1988) draws
# the same ranges for every server.
SCRIPT: Final = """
local count, at, requests, threads = 8192, 0, {}, 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(args)
  local size, film, seed = tonumber(args[1]), tonumber(args[2]), tonumber(args[3])
  local x = (seed * 48271 + number * 7919) % 2147483646 + 1
  local places = math.floor((film - size) / 16384) + 1
  for i = 1, count do
    x = x * 16807 % 2147483647
    local start = math.floor(x / 2147483647 * places) * 16384
    requests[i] = wrk.format(nil, nil,
      {Host = "127.0.0.1", Range = string.format("bytes=%d-%d", start, start + size - 1)})
  end
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests":%d,"bytes":%.0f,"seconds":%.6f,"p50":%.6f,"p99":%.6f,' ..
    '"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\\n',
    summary.requests, summary.bytes, summary.duration / 1e6,
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    e.connect, e.read, e.write, e.status, e.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What one server did under one load, once.

    Attributes:
        requests: per second.
        rate: bytes per second, with headers.
        cpu: seconds of the server's processors per 10^9 bytes.
        p50: median time from request to last byte, seconds.
        p99: 99th percentile of the same.
        server_busy: share of the server's cores that was busy, whoever kept them so.
        load_busy: the same of the load's cores: where it is near 1 and the server's is not, the
            server had more to give.
        errors: answers other than 2xx or of another length, and connections that broke.
    """

    requests: float
    rate: float
    cpu: float
    p50: float
    p99: float
    server_busy: float
    load_busy: float
    errors: int


def find_wrk() -> str:
    """The path of wrk.

    Raises:
        BenchError: it is not installed.
    """
    path = shutil.which("wrk")
    if path is None:
        raise BenchError("wrk is missing: install it (Debian: apt install wrk)")
    return path


def measure(
    program: Program,
    url: str,
    *,
    load: str,
    script: Path,
    film_bytes: int,
    size: int,
    connections: int,
    seconds: float,
    server_cores: Sequence[int],
    cores: Sequence[int],
    seed: int,
) -> Run:
    """Load a server once.

    Args:
        program: the server.
        url: of the film on it.
        load: "wrk" or "drain".
        script: a file with `SCRIPT`.
        film_bytes: length of the film.
        size: bytes of each range.
        connections: how many ask at the same time, each for one range after the other.
        seconds: how long; wrk takes whole ones.
        server_cores: where the server runs.
        cores: where the load runs; wrk has a thread on each.
        seed: which ranges.

    Raises:
        BenchError: the server ended, or the load failed.
    """
    if load == "wrk":
        command = [find_wrk(), "-t", str(min(len(cores), connections)), "-c", str(connections)]
        command += ["-d", f"{max(1, round(seconds))}s", "--timeout", "30s", "-s", str(script), url]
        command += ["--", str(size), str(film_bytes), str(seed)]
    else:
        numbers = map(str, (size, film_bytes, connections, seconds, seed))
        command = [sys.executable, str(_DRAIN), url, *numbers]
    program.check()
    used, busy = program.cpu_seconds(), _core_times()
    done = subprocess.run(
        on_cores(cores, command), capture_output=True, text=True, check=False, cwd=script.parent
    )
    used, busy = program.cpu_seconds() - used, _shares(busy, _core_times())
    program.check()
    if done.returncode:
        raise BenchError(f"{load} failed: {(done.stderr or done.stdout).strip()}")
    summary = json.loads(done.stdout.rstrip().rpartition("\n")[2])
    return parse(
        summary,
        size=size,
        connections=connections,
        cpu=used,
        busy=(_mean(busy, server_cores), _mean(busy, cores)),
    )


def parse(
    summary: dict[str, Any], *, size: int, connections: int, cpu: float, busy: tuple[float, float]
) -> Run:
    """Make a run of what wrk's script printed, and of what was measured beside it.

    Args:
        summary: the script's object.
        size: bytes of each range.
        connections: how many there were.
        cpu: seconds that the server's processes computed.
        busy: shares of the server's and of the load's cores.
    """
    requests, received, seconds = summary["requests"], summary["bytes"], summary["seconds"]
    errors = sum(summary[kind] for kind in ("connect", "read", "write", "status", "timeout"))
    # wrk takes a whole film for a good answer too; each connection may have one under way.
    if not requests * size <= received <= (requests + connections) * (size + _HEADER_BYTES):
        errors += 1
    return Run(
        requests=requests / seconds,
        rate=received / seconds,
        cpu=cpu / (received / 1e9) if received else float("inf"),
        p50=summary["p50"],
        p99=summary["p99"],
        server_busy=busy[0],
        load_busy=busy[1],
        errors=errors if requests else max(errors, 1),
    )


def _core_times() -> dict[int, tuple[int, int]]:
    """Of each core, ticks not idle and ticks in all since the machine started (proc(5))."""
    times = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks = [int(field) for field in fields[:8]]
            times[int(name[3:])] = (sum(ticks) - ticks[3] - ticks[4], sum(ticks))
    return times


def _shares(
    before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]
) -> dict[int, float]:
    return {
        core: (busy - before[core][0]) / max(1, total - before[core][1])
        for core, (busy, total) in after.items()
    }


def _mean(shares: dict[int, float], cores: Sequence[int]) -> float:
    return sum(shares[core] for core in cores) / len(cores)
