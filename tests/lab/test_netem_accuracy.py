"""How near a network of many hosts is to what was asked for while all the others are busy."""

import statistics
import time

import pytest

from netem.backends import TunBackend, UmlBackend
from netem.distributions import Distribution
from netem.measure import loaded
from netem.measured import SURE_95, share_interval
from netem.network import Network
from netem.topology import GilbertElliott, Host, LatencyClass, Topology
from tests.conformance.check_network import measured_right

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(900)]

RATES = {"tun": 250_000.0, "uml": 100_000.0}
"""Of every link, bytes/s: a guest's one core carries less than two cores do."""


def classes(rate):
    return {
        "plain": LatencyClass("plain", 0.025, rate=rate, queue_seconds=1.0),
        "lossy": LatencyClass("lossy", 0.010, 0.003, loss=0.02, rate=rate, queue_seconds=1.0),
        "wild": LatencyClass(
            "wild",
            0.030,
            0.008,
            distribution=Distribution.NORMAL,
            bursts=GilbertElliott(0.01, 0.3),
            rate=rate,
            queue_seconds=1.0,
        ),
        "hasty": LatencyClass("hasty", 0.020, reorder=0.1, rate=rate, queue_seconds=1.0),
    }


def a_town(pairs, rate):
    """So many pairs of hosts of each class."""
    kinds = classes(rate)
    hosts = tuple(Host(f"{name}-{n}", name) for name in kinds for n in range(1, 2 * pairs + 1))
    return Topology("town", tuple(kinds.values()), hosts)


@pytest.mark.parametrize("backend", ["tun", "uml"], ids=["on_tun", "on_uml"])
async def test_under_load_it_is_what_it_says(backend, full, figures):
    """20 hosts and more, all but the two that are measured sending at half their rate.

    Held to its figures at full size only, as evidence: a busy machine is not the network's fault.
    """
    how = {"tun": TunBackend(), "uml": UmlBackend()}[backend]
    if (missing := how.missing()) is not None:
        pytest.skip(missing)
    if backend == "uml" and not full:
        pytest.skip("only with --full: tests/lab/test_netem_uml.py boots a guest already")
    rate = RATES[backend]
    topology = a_town(3 if full else 1, rate)
    many = 1500 if full else 50
    wrong, again = [], []
    began = time.monotonic()
    async with Network(topology, backend=how) as network:
        figures[f"netem_{backend}_hosts"] = len(topology.hosts)
        figures[f"netem_{backend}_up_seconds"] = round(time.monotonic() - began, 2)
        for name in classes(rate) if full else ["lossy"]:
            pair = (f"{name}-1", f"{name}-2")
            others = [host.name for host in topology.hosts if host.name not in pair]
            async with loaded(network, others, [rate / 2] * len(others)):
                seen, before = await measured_right(
                    network,
                    *pair,
                    tries=3 if full else 1,
                    pings=many,
                    packets=many,
                    flood_seconds=2.0 if full else 0.3,
                )
            again += [f"{name}: {wrongs}" for wrongs in before]
            wanted = statistics.median(seen.expected.round_trips)
            inflation = seen.expected.inflation
            low, high = share_interval(
                seen.stream.sent, seen.stream.lost, sure=SURE_95, inflation=inflation
            )
            figures |= {
                f"netem_{backend}_{name}_rtt_ms": round(seen.round_trip_seconds * 1e3, 3),
                f"netem_{backend}_{name}_rtt_expected_ms": round(wanted * 1e3, 3),
                f"netem_{backend}_{name}_rate_share": round(seen.rate / seen.expected.rate, 4),
                f"netem_{backend}_{name}_lost": round(seen.stream.lost / seen.stream.sent, 4),
                f"netem_{backend}_{name}_lost_expected": round(seen.expected.loss, 4),
                f"netem_{backend}_{name}_loss_in_interval": low <= seen.expected.loss <= high,
                f"netem_{backend}_{name}_overtaken": round(
                    seen.stream.reordered / seen.stream.sent, 4
                ),
                f"netem_{backend}_{name}_overtaken_expected": round(seen.expected.reordered, 4),
                f"netem_{backend}_{name}_spread_distance": round(seen.spread_distance or 0.0, 4),
            }
            wrong += seen.wrong()
        ended = time.monotonic()
    figures[f"netem_{backend}_down_seconds"] = round(time.monotonic() - ended, 2)
    figures[f"netem_{backend}_kernel"] = network.facts["kernel"]
    figures[f"netem_{backend}_congestion_control"] = network.facts["congestion_control"]
    figures[f"netem_{backend}_measured_again"] = again
    figures[f"netem_{backend}_wrong"] = len(wrong)
    figures[f"netem_{backend}_wrong_in_words"] = "; ".join(wrong)
    if full:
        assert not wrong
