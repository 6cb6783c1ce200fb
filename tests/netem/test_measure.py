import pytest

from netem.backends import TunBackend
from netem.errors import NetemError
from netem.measure import loaded, measure
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology

HOSTS = (Host("one", "a"), Host("two", "a"))


@pytest.mark.slow
async def test_a_network_that_lies_is_found_out(tun):
    """What is measured comes from the packets, not from the topology that is held beside it."""
    truth = Topology("t", (LatencyClass("a", 0.004, rate=2.5e5),), HOSTS)
    async with Network(truth, backend=TunBackend()) as network:
        network.topology = Topology("t", (LatencyClass("a", 0.002, loss=0.2, rate=5e5),), HOSTS)
        seen = await measure(network, "one", "two", pings=60, packets=100, flood_seconds=0.3)
    round_trip, loss, rate = seen.wrong()
    assert "not 4.11" in round_trip
    assert "of packets lost, not 20" in loss
    assert "not 500000" in rate


@pytest.mark.slow
async def test_a_load_sends_and_ends_with_its_block(tun):
    free = Topology("t", (LatencyClass("a"),), HOSTS)
    network = Network(free, backend=TunBackend())
    async with network, loaded(network, ["one", "two"], [1e5, 1e5], 500):
        pass
    assert network.report["ended_processes"] == 0
    assert network.report["forwarded"] > 0


async def test_an_unknown_host_is_refused():
    network = Network(Topology("t", (LatencyClass("a"),), (HOSTS[0],)), backend=TunBackend())
    with pytest.raises(NetemError, match="no host 'two'"):
        await measure(network, "one", "two")
