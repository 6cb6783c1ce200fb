"""The fixture that other projects' tests can use, used as they would."""

import sys

import pytest

from netem import network as network_module
from netem.errors import NetemError
from netem.topology import Host, LatencyClass, Topology

KNOCK = """
import socket, sys, time
began = time.monotonic()
try:
    socket.create_connection((sys.argv[1], 9), timeout=20)
except ConnectionRefusedError:
    print(time.monotonic() - began)
"""
NEAR = LatencyClass("near", 0.005)
TWO = Topology("two", (NEAR,), (Host("server", "near"), Host("viewer", "near")))


@pytest.mark.lab
@pytest.mark.slow
async def test_a_network_lasts_as_long_as_its_test(emulated_network):
    network = await emulated_network(TWO, seed=1)
    done = await network.run("viewer", [sys.executable, "-c", KNOCK, network.address("server")])
    assert done.exit_code == 0, done.errors
    assert float(done.output) >= 0.009
    assert network.facts["seed"] == 1


async def test_where_none_can_be_the_test_is_skipped_and_says_why(emulated_network, monkeypatch):
    def choose(*_, **__):
        raise NetemError("it needs root, or a kernel with user namespaces")

    monkeypatch.setattr(network_module, "choose", choose)
    with pytest.raises(pytest.skip.Exception, match="emulated here: it needs root"):
        await emulated_network(TWO)
