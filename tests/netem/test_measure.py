import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.errors import NetemError
from netem.measure import Measured, loss_interval, measure
from netem.network import Network
from netem.topology import Host, LatencyClass, Path, Topology

ASKED = Path(round_trip_seconds=0.05, jitter_seconds=0.0, loss=0.0, rate=1e6)
FINE = {
    "sender": "a",
    "receiver": "b",
    "asked": ASKED,
    "pings": 100,
    "answered": 100,
    "round_trip_seconds": 0.0502,
    "round_trip_p95_seconds": 0.06,
    "loss_low": 0.0,
    "loss_high": 0.05,
    "rate": 0.99e6,
}


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, None),
        ({"round_trip_seconds": 0.0506}, "takes 50.60 ms, not 50.00"),
        ({"round_trip_seconds": 0.0494}, "takes 49.40 ms"),
        ({"round_trip_seconds": None}, "no echo was answered"),
        ({"loss_low": 0.01}, "of round trips are lost, not 0.00%"),
        ({"rate": 0.96e6}, "the rate is 960000 bytes/s, not 1000000"),
        ({"rate": 1.04e6}, "the rate is 1040000"),
        ({"rate": None}, "nothing arrived of a flood"),
    ],
)
def test_a_difference_is_named(seen, words):
    wrong = Measured(**(FINE | seen)).wrong()
    assert wrong == [] if words is None else words in wrong[0]


@given(st.integers(1, 5000), st.data())
def test_the_interval_holds_what_was_seen(sent, data):
    lost = data.draw(st.integers(0, sent))
    low, high = loss_interval(sent, lost)
    assert 0.0 <= low <= lost / sent <= high <= 1.0


def test_the_interval_of_a_known_case():
    """Wilson's 99 % interval of 20 in 1000, computed by hand: 0.01136 to 0.03496."""
    assert loss_interval(1000, 20) == pytest.approx((0.01136, 0.03496), abs=2e-5)


@pytest.mark.slow
async def test_a_network_that_lies_is_found_out(tun):
    """What is measured comes from the packets, not from the topology that is held beside it."""
    hosts = (Host("one", "a"), Host("two", "a"))
    truth = Topology("t", (LatencyClass("a", 0.004, rate=2.5e5),), hosts)
    async with Network(truth) as network:
        network.topology = Topology("t", (LatencyClass("a", 0.002, loss=0.2, rate=5e5),), hosts)
        seen = await measure(network, "one", "two", pings=100, flood_seconds=0.3)
    round_trip, loss, rate = seen.wrong()
    assert "not 4.00" in round_trip
    assert "not 36.00%" in loss
    assert "not 500000" in rate


async def test_an_unknown_host_is_refused():
    network = Network(Topology("t", (LatencyClass("a"),), (Host("one", "a"),)))
    with pytest.raises(NetemError, match="no host 'two'"):
        await measure(network, "one", "two")
