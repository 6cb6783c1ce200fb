"""Real NetEm in user-mode Linux guests: it does what is asked of it, and leaves nothing."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from netem.backends import UmlBackend
from netem.errors import NetemError
from netem.guest.frames import Kind
from netem.guest.guest import Guest
from netem.measure import measure
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology
from tests.conformance.check_network import TOWN, check_effects, check_programs
from tests.lab.guests import guests, needs_uml

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(300), needs_uml]


RATE = 100_000.0
STALE = Path(__file__).parents[1] / "netem" / "test_stale.py"


async def until_as_before(before):
    async with asyncio.timeout(60):
        while guests() - before:  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.05)


async def test_it_does_what_every_backend_must(full, figures):
    """Here the `kernel` backend runs, too: it is what makes the network in the guest."""
    before = guests()
    async with Network(TOWN, backend=UmlBackend(), congestion_control="reno") as network:
        await check_programs(network)
        assert network.facts["congestion_control"] == "reno"
        figures |= await check_effects(network, full=full)
    figures["guest_seconds"] = network.facts["guest_seconds"]
    await until_as_before(before)


async def test_what_overtakes_counts_for_the_rate_too():
    """NetEm sends it past whatever discipline is inside: the rate would be a tenth too high."""
    hasty = LatencyClass("hasty", 0.02, reorder=0.1, rate=RATE, queue_seconds=1.0)
    topology = Topology("t", (hasty,), (Host("a", "hasty"), Host("b", "hasty")))
    async with Network(topology, backend=UmlBackend()) as network:
        seen = await measure(network, "a", "b", pings=20, packets=100, flood_seconds=2.0)
    assert seen.stream.reordered
    assert seen.rate <= 1.04 * RATE  # a busy machine sends less, never more


async def test_fifty_hosts_are_up_and_down_soon(full, figures):
    many = 50 if full else 5
    hosts = tuple(Host(f"h{number}", "a") for number in range(many))
    topology = Topology("many", (LatencyClass("a", 0.01, rate=RATE),), hosts)
    began = time.monotonic()
    async with Network(topology, backend=UmlBackend()) as network:
        up = time.monotonic()
        assert len({network.address(host.name) for host in hosts}) == many
    figures[f"netem_uml_up_{many}_hosts_seconds"] = round(up - began, 3)
    figures[f"netem_uml_down_{many}_hosts_seconds"] = round(time.monotonic() - up, 3)


async def test_with_loopback_a_host_reaches_itself_in_twice_its_delay():
    """The source's own way: delay on everything that a machine sends, to itself included."""
    source = Topology("source", (LatencyClass("a", 0.004),), (Host("one", "a"),), loopback=True)
    code = "from netem import trials; print(min(trials.ping('127.0.0.1', 20, 0.01)['round_trips']))"
    async with Network(source) as network:
        assert network.facts["backend"] in {"kernel", "uml"}
        assert "tun cannot do loopback" in network.facts["why"]
        finished = await network.run("one", [sys.executable, "-c", code])
    assert 0.008 <= float(finished.output) < 10


GUEST = """
import asyncio, sys
from netem.guest.frames import Kind
from netem.guest.guest import Guest
async def main():
    async with Guest(256 << 20) as guest:
        await guest.start(["sh", "-c", "sleep 1000 & echo in; sleep 1000"], heard)
        await asyncio.sleep(1000)
def heard(frame):
    print(frame.data.decode().strip(), flush=True)
asyncio.run(main())
"""


async def test_killed_with_sigkill_a_guest_and_all_in_it_end():
    before = guests()
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", GUEST, stdout=asyncio.subprocess.PIPE
    )
    assert await parent.stdout.readline() == b"in\n"
    assert guests() - before
    parent.kill()
    await parent.wait()
    await until_as_before(before)


async def test_killed_at_any_moment_a_kernel_network_leaves_nothing():
    """What tests/netem/test_stale.py has for backends of the running kernel, where it has NetEm."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "on_kernel"]
    said = b""

    def hear(frame):
        nonlocal said
        said += frame.data if frame.kind is not Kind.EXIT else b""

    async with Guest(512 << 20) as guest:
        program = await guest.start([*words, str(STALE)], hear)
        assert await program.wait() == 0, said.decode()
    assert b" passed" in said
    assert b"skipped" not in said


async def test_a_guest_that_dies_is_an_error_for_whoever_waits():
    before = guests()
    async with Guest(256 << 20) as guest:
        program = await guest.start(["sleep", "1000"], lambda _: None)
        for process in guests() - before:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        with pytest.raises(NetemError, match="the guest has ended"):
            async with asyncio.timeout(60):
                await program.wait()
    await until_as_before(before)
