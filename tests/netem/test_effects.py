import pytest

from netem.effects import Effect, asked_effects
from netem.topology import Host, LatencyClass, Topology


@pytest.mark.parametrize(
    ("options", "effect"),
    [
        ({"delay_seconds": 0.01}, Effect.DELAY),
        ({"loss": 0.01}, Effect.LOSS),
        ({"rate": 1e6}, Effect.RATE),
        ({"download": 1e6}, Effect.DOWNLOAD),
    ],
)
def test_each_is_asked_for_by_its_field(options, effect):
    topology = Topology("t", (LatencyClass("a", **options),), (Host("h", "a"),))
    assert asked_effects(topology) == {effect}


def test_jitter_comes_with_a_delay_and_loopback_with_the_whole():
    jittery = LatencyClass("a", delay_seconds=0.01, jitter_seconds=0.001)
    topology = Topology("t", (jittery,), (Host("h", "a"),), loopback=True)
    assert asked_effects(topology) == {Effect.DELAY, Effect.JITTER, Effect.LOOPBACK}


def test_a_class_without_hosts_asks_for_nothing():
    classes = (LatencyClass("a"), LatencyClass("b", loss=0.5))
    assert asked_effects(Topology("t", classes, (Host("h", "a"),))) == frozenset()
