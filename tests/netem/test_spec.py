from hypothesis import given
from hypothesis import strategies as st

from netem.spec import NetworkSpec
from netem.topology import Host, LatencyClass, Topology


def topology(hosts):
    return Topology(
        "t",
        (LatencyClass("a", 0.01, 0.001, 0.1, 1e6, 2e6, 0.05),),
        tuple(Host(f"h{n}", "a") for n in range(hosts)),
        loopback=True,
    )


@given(st.integers(0, 2**31), st.sampled_from([None, "cubic"]), st.booleans())
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
