"""Whether a network that runs does what was asked of it: delay, loss and rate between two hosts."""

import asyncio
import json
import math
import statistics
import sys
from dataclasses import dataclass
from typing import Any, Final, Protocol

from netem.errors import NetemError
from netem.topology import Path, Topology

__all__ = ["Hosts", "Measured", "loss_interval", "measure"]

_RTT_SHARE: Final = 0.01
_RTT_SECONDS: Final = 0.0003
_RATE_SHARE: Final = 0.03
_SURE: Final = 2.575829  # two-sided 99 %: a test that fails by chance once in twenty is none
_TOO_MUCH: Final = 1.15
_GRACE_SECONDS: Final = 15.0


class Hosts(Protocol):
    """A network that runs, and can be asked to run a program in a host."""

    @property
    def topology(self) -> Topology:
        """What runs."""

    def address(self, host: str) -> str:
        """Its IPv4 address."""

    def command(self, host: str, command: list[str]) -> list[str]:
        """What to start to run a command there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was seen between two hosts, beside what was asked for.

    Attributes:
        sender: the host that sent.
        receiver: the host that answered.
        asked: what the topology says.
        pings: echoes sent.
        answered: echoes answered.
        round_trip_seconds: median; None if none was answered.
        round_trip_p95_seconds: likewise.
        loss_low: least share of round trips lost that this many losses are likely (99 %) for.
        loss_high: the largest such share.
        rate: bytes per second that arrived of somewhat more than the limit; None if there is no
            limit.
    """

    sender: str
    receiver: str
    asked: Path
    pings: int
    answered: int
    round_trip_seconds: float | None
    round_trip_p95_seconds: float | None
    loss_low: float
    loss_high: float
    rate: float | None

    def wrong(self) -> list[str]:
        """What is not as asked for, in words; empty if all is."""
        found = []
        wanted = self.asked.round_trip_seconds
        if self.round_trip_seconds is None:
            found.append("no echo was answered")
        elif abs(self.round_trip_seconds - wanted) > self._allowed_seconds:
            found.append(
                f"the round trip takes {self.round_trip_seconds * 1e3:.2f} ms,"
                f" not {wanted * 1e3:.2f}"
            )
        if not self.loss_low <= self.asked.loss <= self.loss_high:
            found.append(
                f"{1 - self.answered / self.pings:.2%} of round trips are lost,"
                f" not {self.asked.loss:.2%}"
            )
        if (limit := self.asked.rate) is not None:
            if self.rate is None:
                found.append("nothing arrived of a flood")
            elif abs(self.rate - limit) > limit * _RATE_SHARE:
                found.append(f"the rate is {self.rate:.0f} bytes/s, not {limit:.0f}")
        return found

    @property
    def _allowed_seconds(self) -> float:
        """How far the median may be off: by its own error, and by that of a sample of so many."""
        own = max(self.asked.round_trip_seconds * _RTT_SHARE, _RTT_SECONDS)
        # A median's standard error is 1 / (2 density sqrt(n)); the density of one uniform jitter
        # is 1 / (2 jitter), and that of the sum of two is higher in the middle.
        return own + _SURE * self.asked.jitter_seconds / math.sqrt(max(self.answered, 1))


def loss_interval(sent: int, lost: int) -> tuple[float, float]:
    """Between which shares the true loss lies with 99 % (Wilson's score interval)."""
    share, z2 = lost / sent, _SURE * _SURE
    middle = (share + z2 / (2 * sent)) / (1 + z2 / sent)
    half = _SURE / (1 + z2 / sent)
    half *= math.sqrt(share * (1 - share) / sent + z2 / (4 * sent * sent))
    # Exactly 0 and 1 at the ends: rounding must not exclude what was asked for.
    low = max(0.0, middle - half) if lost else 0.0
    return low, min(1.0, middle + half) if lost < sent else 1.0


async def measure(
    network: Hosts,
    sender: str,
    receiver: str,
    *,
    pings: int = 1000,
    interval_seconds: float = 0.002,
    flood_seconds: float = 1.0,
) -> Measured:
    """Measure the way between two hosts: `pings` echoes, then a flood if the rate is limited.

    Raises:
        NetemError: a trial did not run.
    """
    classes = {host.name: host.latency_class for host in network.topology.hosts}
    for name in (sender, receiver):
        if name not in classes:
            raise NetemError(f"there is no host '{name}' in '{network.topology.name}'")
    asked = network.topology.path(classes[sender], classes[receiver])
    address = network.address(receiver)
    echoes = await _trial(
        network, sender, "ping", address, str(pings), str(interval_seconds),
        seconds=pings * interval_seconds,
    )  # fmt: skip
    trips = sorted(echoes["round_trips"])
    low, high = loss_interval(pings, pings - len(trips))
    rate = None
    if asked.rate is not None:
        rate = await _flood(network, sender, receiver, asked.rate, flood_seconds)
    return Measured(
        sender=sender,
        receiver=receiver,
        asked=asked,
        pings=pings,
        answered=len(trips),
        round_trip_seconds=statistics.median(trips) if trips else None,
        round_trip_p95_seconds=trips[int(len(trips) * 0.95)] if trips else None,
        loss_low=low,
        loss_high=high,
        rate=rate,
    )


async def _flood(
    network: Hosts, sender: str, receiver: str, limit: float, seconds: float
) -> float | None:
    sink = await _start(network, receiver, "sink", str(seconds + 0.7))
    try:
        assert sink.stdout is not None
        async with asyncio.timeout(_GRACE_SECONDS + seconds):
            ready = await sink.stdout.readline()
            if not ready:
                raise NetemError(f"the sink in {receiver} did not start")
            port = str(json.loads(ready)["port"])
            flood = str(limit * _TOO_MUCH)
            await _trial(
                network, sender, "flood", network.address(receiver), port, flood, str(seconds),
                seconds=seconds,
            )  # fmt: skip
            result: dict[str, Any] = json.loads(await sink.stdout.read())
            await sink.wait()
    except TimeoutError as error:
        raise NetemError(f"the flood from {sender} to {receiver} did not end") from error
    finally:
        await _end(sink)
    rate: float | None = result["rate"]
    return rate


async def _trial(network: Hosts, host: str, *words: str, seconds: float) -> dict[str, Any]:
    process = await _start(network, host, *words)
    try:
        async with asyncio.timeout(seconds + _GRACE_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise NetemError(f"the {words[0]} from {host} did not end") from error
    finally:
        await _end(process)
    if process.returncode != 0 or not output:
        raise NetemError(
            f"the {words[0]} from {host} failed: its exit code is {process.returncode}"
        )
    result: dict[str, Any] = json.loads(output)
    return result


async def _start(network: Hosts, host: str, *words: str) -> asyncio.subprocess.Process:
    command = network.command(host, [sys.executable, "-m", "netem.trials", *words])
    return await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
