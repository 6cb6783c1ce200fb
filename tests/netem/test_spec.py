from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from netem.distributions import Distribution
from netem.spec import NetworkSpec
from netem.topology import GilbertElliott, Host, LatencyClass, Topology, Ways


def topology(hosts):
    return Topology(
        "t",
        (
            LatencyClass("a", 0.01, 0.001, 0.1, 1e6, 2e6, 0.05),
            LatencyClass("b", 0.01, 0.001, distribution=Distribution.PARETO, ways=Ways.BOTH),
            LatencyClass("c", bursts=GilbertElliott(0.1, 0.2)),
        ),
        tuple(Host(f"h{n}", "a") for n in range(hosts)),
        loopback=True,
    )


@given(st.none() | st.integers(0, 2**31), st.sampled_from([None, "cubic"]), st.booleans())
def test_it_survives_being_written(seed, congestion_control, lifeline):
    spec = NetworkSpec(topology(3), seed, congestion_control, lifeline)
    assert "\n" not in spec.to_json()
    assert NetworkSpec.from_json(spec.to_json()) == spec


def test_every_host_has_an_address_of_its_own_in_the_test_block():
    addresses = NetworkSpec(topology(10_000)).addresses()
    assert len(set(addresses.values())) == 10_000
    assert addresses["h0"] == "198.18.0.1"
    assert addresses["h250"] == "198.18.1.1"
    assert all(a.startswith(("198.18.", "198.19.")) for a in addresses.values())
    assert not any(a.endswith((".0", ".255")) for a in addresses.values())


def test_the_seed_beside_the_topology_goes_before_its_own():
    seeded = replace(topology(1), seed=5)
    assert NetworkSpec(seeded, 7).chance_seed == 7
    assert NetworkSpec(seeded).chance_seed == 5
    assert NetworkSpec(topology(1)).chance_seed == 0
