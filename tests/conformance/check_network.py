"""What every way of emulating a network must do; run by the tests of each."""

import asyncio
import signal
import statistics
import sys
from pathlib import Path

import pytest

from netem.backends import choose
from netem.distributions import Distribution
from netem.effects import Effect
from netem.errors import NetemError
from netem.measure import measure
from netem.measured import Measured, share_interval
from netem.network import Network
from netem.topology import GilbertElliott, Host, LatencyClass, Topology, Ways

__all__ = ["TOWN", "check_effects", "check_programs", "check_refusals", "measured_right"]

SURE = 5.0
"""Standard deviations: one test in a million fails by chance."""

CLASSES = {
    # Each shows some effects that do not hide one another.
    "plain": LatencyClass("plain", 0.010, rate=250_000.0, queue_seconds=1.0),
    "rough": LatencyClass(
        "rough",
        0.020,
        0.006,
        distribution=Distribution.NORMAL,
        bursts=GilbertElliott(0.03, 0.3),
        duplicate=0.05,
        corrupt=0.05,
    ),
    "hasty": LatencyClass("hasty", 0.015, loss=0.1, reorder=0.2, ways=Ways.BOTH),
    "narrow": LatencyClass("narrow", 0.005, download=125_000.0, queue_seconds=1.0),
}
TOWN = Topology(
    "town",
    tuple(CLASSES.values()),
    tuple(Host(f"{name}-{number}", name) for name in CLASSES for number in (1, 2)),
)


async def measured_right(
    network: Network, sender: str, receiver: str, *, tries: int = 3, **sizes: float
) -> tuple[Measured, list[str]]:
    """Measure, and again where it was wrong: a shared machine is taken from us for a while.

    What is wrong with the network itself is so every time.

    Returns:
        The last measurement, and in words what was wrong with those before it.
    """
    before: list[str] = []
    while True:
        seen = await measure(network, sender, receiver, **sizes)
        wrong = seen.wrong()
        tries -= 1
        if not wrong or not tries:
            return seen, before
        before.append("; ".join(wrong))


async def check_effects(network: Network, *, full: bool) -> dict[str, float]:
    """Fail where packets do not meet what `TOWN` says.

    A busy machine is late, and sends unevenly: only if `full` is what it did to time held to the
    tolerances of `Measured.wrong`. What chance does to packets is always held to what is expected.

    Returns:
        Figures.
    """
    sizes = {"pings": 600, "packets": 2000} if full else {"pings": 10, "packets": 300}
    sizes["flood_seconds"] = 1.0 if full else 0.3
    figures: dict[str, float] = {}
    for name, what in CLASSES.items():
        if not full and seen_rate(what) is not None:
            continue  # a flood takes seconds, and shows nothing on a busy machine
        pair = (f"{name}-1", f"{name}-2")
        seen, _ = await measured_right(network, *pair, tries=3 if full else 1, **sizes)
        if full:
            assert seen.wrong() == [], (name, seen.wrong())
        # The median of ten pings may be far from that of all; below one in twenty it hardly comes.
        low_end = statistics.quantiles(seen.expected.round_trips, n=20)[0]
        least = low_end - 2 * what.jitter_seconds - 0.001
        assert seen.round_trip_seconds >= least, name
        stream, expected = seen.stream, seen.expected
        for hits, wanted, inflation in (
            (stream.lost, expected.loss, expected.inflation),
            (stream.duplicates, expected.duplicates, 1.0),
            (stream.corrupted, expected.corrupted, 1.0),
        ):
            low, high = share_interval(stream.sent, hits, sure=SURE, inflation=inflation)
            assert low <= wanted <= high, (name, stream, expected)
        if what.reorder:
            assert stream.reordered == 0 or expected.reordered > 0
            assert stream.reordered > 0
        if seen.rate is not None:
            assert seen.rate <= seen.asked.rate * 1.1, name
        figures[f"{name}_rtt_ms"] = round(seen.round_trip_seconds * 1e3, 3)
    return figures


async def check_programs(network: Network) -> None:
    """Fail where programs do not run in their host as they would anywhere."""
    one, two = (host.name for host in network.topology.hosts[:2])
    assert network.address(one) != network.address(two)
    assert network.facts["congestion_control"]
    finished = await network.run(one, ["ip", "-o", "-4", "address"])
    assert network.address(one).encode() in finished.output
    assert network.address(two).encode() not in finished.output
    code = "import sys; sys.stderr.write(sys.stdin.read() + 'no'); sys.exit(3)"
    finished = await network.run(two, [sys.executable, "-c", code])
    assert (finished.exit_code, finished.errors) == (3, b"no")
    assert (await network.run(one, ["pwd"])).output == f"{Path.cwd()}\n".encode()
    finished = await network.run(one, ["no-such-program"])
    assert finished.exit_code == 127
    assert b"no-such-program cannot be started" in finished.errors
    echo = await network.popen(
        one, ["cat"], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await echo.communicate(b"there and back" * 10_000)
    assert output == b"there and back" * 10_000
    asleep = await network.popen(two, ["sh", "-c", "echo in; exec sleep 1000"], stdout=-1)
    assert await asleep.stdout.readline() == b"in\n"
    asleep.send_signal(signal.SIGTERM)
    assert await asleep.wait() == -signal.SIGTERM
    with pytest.raises(NetemError, match=f"no host 'nobody'; there are {one}, {two}"):
        network.address("nobody")


def seen_rate(what: LatencyClass) -> float | None:
    """The limit that two hosts of a class meet."""
    return what.rate or what.download


def check_refusals(backend) -> None:
    """Fail unless every effect that a backend lacks is refused by its name."""
    asking = {
        Effect.LOOPBACK: Topology("t", (LatencyClass("a"),), (Host("h", "a"),), loopback=True),
        Effect.SEED: Topology("t", (LatencyClass("a"),), (Host("h", "a"),), seed=1),
        Effect.CORRELATION: Topology(
            "t", (LatencyClass("a", 0.01, 0.001, correlation=0.5),), (Host("h", "a"),)
        ),
    }
    lacking = frozenset(Effect) - backend.effects
    assert lacking <= asking.keys(), "one that nothing here asks for"
    for effect in lacking:
        with pytest.raises(NetemError, match=f"{backend.name} cannot do .*{effect}"):
            choose(asking[effect], backend.name)
