import pytest

from netem.distributions import Distribution
from netem.effects import Effect, asked_effects
from netem.topology import GilbertElliott, Host, LatencyClass, Topology, Ways


@pytest.mark.parametrize(
    ("options", "effect"),
    [
        ({"delay_seconds": 0.01}, Effect.DELAY),
        ({"loss": 0.01}, Effect.LOSS),
        ({"rate": 1e6}, Effect.RATE),
        ({"download": 1e6}, Effect.DOWNLOAD),
        ({"bursts": GilbertElliott(0.1, 0.5)}, Effect.BURSTS),
        ({"duplicate": 0.1}, Effect.DUPLICATE),
        ({"corrupt": 0.1}, Effect.CORRUPT),
        ({"limit_packets": 10}, Effect.LIMIT),
        ({"ways": Ways.BOTH}, Effect.BOTH_WAYS),
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


def test_how_the_jitter_is_and_who_overtakes_are_effects_of_their_own():
    fine = LatencyClass(
        "a", 0.01, 0.001, distribution=Distribution.NORMAL, correlation=0.5, reorder=0.1
    )
    assert asked_effects(Topology("t", (fine,), (Host("h", "a"),))) == {
        Effect.DELAY,
        Effect.JITTER,
        Effect.DISTRIBUTION,
        Effect.CORRELATION,
        Effect.REORDER,
    }


def test_a_seed_is_asked_for_by_whoever_gives_one():
    plain = Topology("t", (LatencyClass("a"),), (Host("h", "a"),))
    assert asked_effects(plain, 0) == {Effect.SEED}
    assert asked_effects(Topology("t", plain.classes, plain.hosts, seed=0)) == {Effect.SEED}
