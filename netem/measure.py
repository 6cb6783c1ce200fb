"""Whether a network that runs does what was asked of it: packets between two of its hosts."""

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from netem import model
from netem.errors import NetemError
from netem.measured import Expected, Measured
from netem.model import Arrivals
from netem.spec import MTU_BYTES
from netem.topology import Topology, Ways

__all__ = ["Hosts", "loaded", "measure"]

_TOO_MUCH: Final = 1.15
_STREAM_BYTES: Final = 400
_STREAM_SHARE: Final = 0.3
"""Of a limited rate, for the stream: it must not meet the limit."""
_STREAM_SECONDS: Final = 0.002
_MODEL_TRIPS: Final = 20_000
_MODEL_PACKETS: Final = 50_000
_GRACE_SECONDS: Final = 60.0


class Hosts(Protocol):
    """A network that runs, and can be asked to run a program in a host."""

    @property
    def topology(self) -> Topology:
        """What runs."""

    def address(self, host: str) -> str:
        """Its IPv4 address."""

    def command(self, host: str, command: list[str]) -> list[str]:
        """What to start to run a command there."""


async def measure(
    network: Hosts,
    sender: str,
    receiver: str,
    *,
    pings: int = 1000,
    packets: int = 1000,
    interval_seconds: float = 0.005,
    flood_seconds: float = 1.0,
) -> Measured:
    """Measure the way between two hosts: echoes, numbered packets, a flood if a rate is limited.

    Raises:
        NetemError: a trial did not run.
    """
    classes = {host.name: host.latency_class for host in network.topology.hosts}
    for name in (sender, receiver):
        if name not in classes:
            raise NetemError(f"there is no host '{name}' in '{network.topology.name}'")
    there, back = classes[sender], classes[receiver]
    asked = network.topology.path(there, back)
    spacing = _STREAM_SECONDS
    if asked.rate is not None:
        spacing = max(spacing, _STREAM_BYTES / (_STREAM_SHARE * asked.rate))
    echoes = await _trial(
        network, sender, "ping", network.address(receiver), str(pings), str(interval_seconds),
        seconds=pings * interval_seconds,
    )  # fmt: skip
    seen = await _send(
        network, sender, receiver, packets, size=_STREAM_BYTES, rate=_STREAM_BYTES / spacing
    )
    rate = None
    if asked.rate is not None:
        speed = asked.rate * _TOO_MUCH / (1.0 - asked.loss)
        many = max(50, round(speed * flood_seconds / MTU_BYTES))
        flood = await _send(network, sender, receiver, many, size=MTU_BYTES, rate=speed)
        rate = flood["rate"]
    seen.pop("rate")
    return Measured(
        sender=sender,
        receiver=receiver,
        asked=asked,
        expected=await asyncio.to_thread(_expected, network.topology, there, back, spacing),
        pings=pings,
        round_trips=tuple(echoes["round_trips"]),
        stream=Arrivals(sent=packets, **seen),
        rate=rate,
    )


@asynccontextmanager
async def loaded(
    network: Hosts, hosts: Sequence[str], rates: Sequence[float], size: int = MTU_BYTES
) -> AsyncIterator[None]:
    """Have hosts send to one another in a circle, for as long as the block lasts.

    Args:
        network: it.
        hosts: who.
        rates: bytes of IP per second of each.
        size: bytes of IP of each packet.

    Raises:
        NetemError: one cannot.
    """
    running = []
    try:
        for at, host in enumerate(hosts):
            to = network.address(hosts[(at + 1) % len(hosts)])
            running.append(await _start(network, host, "load", to, str(rates[at]), str(size)))
        for host, process in zip(hosts, running, strict=True):
            assert process.stdout is not None
            async with asyncio.timeout(_GRACE_SECONDS):
                if not await process.stdout.readline():
                    raise NetemError(f"the load of {host} did not start")
        yield
    finally:
        for process in running:
            await _end(process)


def _expected(topology: Topology, sender: str, receiver: str, spacing: float) -> Expected:
    rng = random.Random(0)  # noqa: S311  (a model's, not a secret)
    trips = model.round_trips(topology, sender, receiver, trips=_MODEL_TRIPS, rng=rng)
    came = model.stream(
        topology,
        sender,
        receiver,
        packets=_MODEL_PACKETS,
        interval_seconds=spacing,
        size=_STREAM_BYTES,
        rng=rng,
    )
    rate = topology.path(sender, receiver).rate
    behind = topology.latency_class(receiver)
    if rate is not None and behind.ways is Ways.BOTH:
        rate *= 1.0 - behind.mean_loss  # it meets this loss behind the sender's limit
    bursts = [topology.latency_class(each).bursts for each in (sender, receiver)]
    return Expected(
        round_trips=tuple(trips),
        loss=came.lost / came.sent,
        inflation=max((each.inflation for each in bursts if each is not None), default=1.0),
        duplicates=came.duplicates / came.sent,
        reordered=came.reordered / came.sent,
        corrupted=came.corrupted / came.sent,
        rate=rate,
    )


async def _send(
    network: Hosts, sender: str, receiver: str, packets: int, *, size: int, rate: float
) -> dict[str, Any]:
    sink = await _start(network, receiver, "sink", str(packets))
    seconds = packets * size / rate
    try:
        assert sink.stdout is not None
        async with asyncio.timeout(_GRACE_SECONDS + seconds):
            ready = await sink.stdout.readline()
            if not ready:
                raise NetemError(f"the sink in {receiver} did not start")
            port = str(json.loads(ready)["port"])
            to = network.address(receiver)
            words = ("send", to, port, str(packets), str(rate), str(size))
            await _trial(network, sender, *words, seconds=seconds)
            result: dict[str, Any] = json.loads(await sink.stdout.read())
            await sink.wait()
    except TimeoutError as error:
        raise NetemError(f"the stream from {sender} to {receiver} did not end") from error
    finally:
        await _end(sink)
    return result


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
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
