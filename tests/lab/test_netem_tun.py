"""The `tun` network does what is asked of it: measured with packets, on a machine under load."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from netem.backends import TunBackend
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology
from tests.conformance.check_network import TOWN, check_effects, check_programs, measured_right

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(300)]

MBPS = 1e6 / 8
HOME = LatencyClass("home", 0.025, rate=100 * MBPS, download=100 * MBPS)
DSL = LatencyClass("dsl", 0.015, jitter_seconds=0.003, loss=0.02, rate=10 * MBPS)


@pytest.fixture(autouse=True)
def _tun():
    if os.geteuid() or not Path("/dev/net/tun").exists():
        pytest.skip("a TUN network needs root and /dev/net/tun")


def a_town(hosts):
    homes = tuple(Host(f"home-{n}", "home") for n in range(hosts - 2))
    return Topology("town", (HOME, DSL), (*homes, Host("dsl-1", "dsl"), Host("dsl-2", "dsl")))


async def test_delay_loss_and_rate_are_as_asked(full, figures):
    """RTT within max(1 %, 0.3 ms), rate within 3 %, loss in its interval, at 100 and 10 Mb/s."""
    many = 1000 if full else 200
    sizes = {"pings": many, "packets": many, "flood_seconds": 1.0 if full else 0.3}
    tries = 3 if full else 1
    async with Network(a_town(4), seed=11) as network:
        home, _ = await measured_right(network, "home-0", "home-1", tries=tries, **sizes)
        dsl, _ = await measured_right(network, "dsl-1", "dsl-2", tries=tries, **sizes)
    for name, seen in (("home", home), ("dsl", dsl)):
        figures[f"netem_{name}_rtt_ms"] = round(seen.round_trip_seconds * 1e3, 3)
        figures[f"netem_{name}_rate_mbps"] = round(seen.rate / MBPS, 3)
        figures[f"netem_{name}_lost"] = round(seen.stream.lost / seen.stream.sent, 4)
        if full:
            assert seen.wrong() == []
    figures["netem_congestion_control"] = network.facts["congestion_control"]
    figures["netem_realtime"] = network.facts["realtime"]
    figures["netem_late_ms_most"] = round(network.report["late_seconds_most"] * 1e3, 3)
    share = network.report["cpu_seconds"] / network.report["seconds"]
    figures["netem_forwarder_cpu_share"] = round(share, 3)


async def test_it_does_what_every_backend_must(full, figures):
    async with Network(TOWN, seed=5) as network:
        await check_programs(network)
        figures |= await check_effects(network, full=full)


SERVE = """
import socket
with socket.create_server(("", 5000)) as listening:
    print("ready", flush=True)
    connection, _ = listening.accept()
    with connection:
        connection.sendall(bytes({size}))
"""
LOAD = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 5000)) as connection:
    taken, began = 0, time.monotonic()
    while part := connection.recv(1 << 20):
        taken += len(part)
    print(taken, time.monotonic() - began)
"""


async def test_tcp_fills_the_link(full, figures):
    """A TCP stream gets at least 75 % of 100 Mb/s at 50 ms, headers and its start included."""
    size = (25 if full else 8) * 1_000_000
    async with Network(a_town(4), backend=TunBackend()) as network:
        began = time.monotonic()
        server = await network.popen(
            "home-0",
            [sys.executable, "-c", SERVE.format(size=size)],
            stdout=asyncio.subprocess.PIPE,
        )
        assert await server.stdout.readline() == b"ready\n"
        client = [sys.executable, "-c", LOAD, network.address("home-0")]
        finished = await network.run("home-1", client)
        took = time.monotonic() - began
    taken, seconds = finished.output.split()
    assert int(taken) == size
    goodput = size / float(seconds) / MBPS
    figures["netem_tcp_goodput_mbps"] = round(goodput, 2)
    figures["netem_tcp_cpu_share"] = round(network.report["cpu_seconds"] / took, 3)
    assert (75 if full else 10) <= goodput <= 100


async def test_fifty_hosts_are_up_and_down_quickly(full, figures):
    began = time.monotonic()
    async with Network(a_town(50), backend=TunBackend()) as network:
        up = time.monotonic()
        first, last = network.address("home-0"), network.address("dsl-2")
        assert first != last
    down = time.monotonic()
    figures["netem_up_50_hosts_seconds"] = round(up - began, 3)
    figures["netem_down_50_hosts_seconds"] = round(down - up, 3)
    assert up - began <= (5 if full else 60)
    assert down - up <= (2 if full else 60)


async def test_the_same_seed_loses_the_same_packets(figures):
    """Which echoes are lost is the same in two networks of one seed, and another in a third."""
    lossy = Topology("lossy", (LatencyClass("a", loss=0.1),), (Host("one", "a"), Host("two", "a")))
    lost = []
    for seed in (1, 1, 2):
        async with Network(lossy, seed=seed) as network:
            code = PATTERN.format(address=network.address("two"))
            lost.append((await network.run("one", [sys.executable, "-c", code])).output)
    figures["netem_same_seed_same_losses"] = lost[0] == lost[1]
    assert lost[0] == lost[1] != lost[2]
    assert lost[0].count(b".") > 100


PATTERN = """
import socket, sys
from netem import trials
seen = []
for n in range(150):
    seen.append("." if trials.ping("{address}", 1, 0.0, wait_seconds=0.02)["round_trips"] else "x")
print("".join(seen))
"""
