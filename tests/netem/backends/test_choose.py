from dataclasses import replace

import pytest

from netem.backends import BACKENDS, KernelBackend, TunBackend, choose
from netem.effects import Effect
from netem.errors import NetemError
from netem.topology import Host, LatencyClass, Topology

LOSSY = Topology("lossy", (LatencyClass("a", loss=0.1),), (Host("one", "a"),))


def test_the_first_that_can_do_everything_is_taken():
    poor = replace(TunBackend(), name="poor", effects=frozenset({Effect.DELAY}))
    rich = replace(TunBackend(), name="rich", effects=frozenset(Effect))
    assert choose(LOSSY, backends=(poor, rich, TunBackend())) is rich
    assert choose(LOSSY, "tun", backends=(poor, rich, TunBackend())).name == "tun"


def test_a_refusal_names_each_lack():
    poor = replace(TunBackend(), name="poor", effects=frozenset({Effect.DELAY}))
    with pytest.raises(NetemError) as refusal:
        choose(LOSSY, backends=(KernelBackend(), poor))
    assert str(refusal.value) == (
        "the network 'lossy' cannot be made: kernel does not run topologies yet;"
        " poor cannot do loss"
    )


def test_an_unknown_one_is_named():
    with pytest.raises(NetemError, match="no backend 'magic': known are kernel, uml, tun"):
        choose(LOSSY, "magic", BACKENDS)
