import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netem.distributions import Distribution
from netem.errors import TopologyError
from netem.presets import PRESETS
from netem.topology import (
    MAX_CLASSES,
    MAX_HOSTS,
    GilbertElliott,
    Host,
    LatencyClass,
    Path,
    Topology,
    Ways,
)
from netem.topology_text import CLASS_FIELDS, topology_from_toml
from toast.common.errors import UsageError

TOWN_AND_COUNTRY = """
name = "town and country"

[classes.town]
delay = "1ms"

[classes.country]
delay = "20ms"
jitter = "4ms"
loss = 0.01
rate = "10Mbps"

[[hosts]]
name = "server"
class = "town"

[[hosts]]
name = "viewer"
class = "country"
count = 3
"""


def test_a_file_becomes_classes_and_hosts():
    topology = topology_from_toml(TOWN_AND_COUNTRY)
    assert topology.name == "town and country"
    assert topology.classes == (
        LatencyClass("town", 0.001),
        LatencyClass("country", 0.020, 0.004, 0.01, 1_250_000.0),
    )
    assert topology.hosts_in("town") == (Host("server", "town"),)
    assert [host.name for host in topology.hosts_in("country")] == [
        "viewer-1",
        "viewer-2",
        "viewer-3",
    ]


def test_a_round_trip_pays_what_both_ends_send():
    """tc-netem(8) delays on the sender's side: out by one's class, back by the other's."""
    topology = topology_from_toml(TOWN_AND_COUNTRY)
    assert topology.path("town", "country") == Path(
        round_trip_seconds=pytest.approx(0.021),
        jitter_seconds=0.004,
        loss=pytest.approx(0.01),
        rate=None,
    )
    assert topology.path("country", "town").rate == 1_250_000.0


def test_within_one_class_a_packet_pays_twice():
    """Two losses of 1 % each way: 1 - 0.99 * 0.99."""
    path = topology_from_toml(TOWN_AND_COUNTRY).path("country", "country")
    assert path.round_trip_seconds == pytest.approx(0.040)
    assert path.jitter_seconds == pytest.approx(0.008)
    assert path.loss == pytest.approx(0.0199)


CLASS = "name = 'n'\n[classes.a]\n{}\n[[hosts]]\nname = 'h'\nclass = 'a'\n"
HOST = "name = 'n'\n[classes.a]\n[[hosts]]\n{}\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "classes is missing"),
        ("classes = 3", "classes must be a table"),
        ("name = 'n'\n[classes]\n", "hosts is missing"),
        ("name = 'n'\nhosts = []\n[classes]\n", "classes: a topology needs at least one"),
        ("name = 'n'\nhosts = []\n[classes.a]\n", "hosts: a topology needs at least one"),
        ("name = 'n'\nhosts = [1]\n[classes.a]\n", r"hosts\[1\] must be a table"),
        ("name = 'n'\nhosts = {}\n[classes.a]\n", "hosts must be a list of tables"),
        ("name = 'n'\nhosts = []\nclasses = {a = 1}\n", r"classes\.a must be a table"),
        ("speed = 3", "speed is unknown; known are classes, hosts, loopback, name, seed"),
        ("[classes.a]\n[[hosts]]\nname='h'\nclass='a'", "name is missing"),
        ("name = [", "the file is not TOML"),
        (CLASS.format("speed = 1"), r"classes\.a\.speed is unknown"),
        (CLASS.format("delay = 4"), r"classes\.a\.delay needs a unit"),
        (CLASS.format("delay = 'far'"), r"classes\.a\.delay: 'far' is not a duration"),
        (CLASS.format("delay = '11s'"), r"classes\.a\.delay must be 0 to 10 s"),
        (CLASS.format("jitter = '1ms'"), r"classes\.a\.jitter must not be longer"),
        (CLASS.format("loss = 1.0"), r"classes\.a\.loss must be a fraction"),
        (CLASS.format("loss = nan"), r"classes\.a\.loss must be a fraction"),
        (CLASS.format("loss = '1%'"), r"classes\.a\.loss must be a fraction"),
        (CLASS.format("loss = false"), r"classes\.a\.loss must be a fraction"),
        (CLASS.format("loss = true"), r"classes\.a\.loss must be a fraction"),
        (CLASS.format("rate = '10'"), r"classes\.a\.rate: '10' is not a rate"),
        (CLASS.format("rate = '0Mbps'"), r"classes\.a\.rate must be above 0"),
        (CLASS.format("preset = 'moon'"), r"classes\.a\.preset is 'moon', and none of cable"),
        (CLASS.format("preset = []"), r"classes\.a\.preset is \[\]"),
        (CLASS.format("distribution = 'odd'"), r"classes\.a\.distribution is 'odd'.*uniform, n"),
        (CLASS.format("distribution = 'normal'"), r"classes\.a\.distribution is of the jitter"),
        (CLASS.format("correlation = 0.5"), r"classes\.a\.correlation is of the jitter"),
        (CLASS.format("correlation = 1.0"), r"classes\.a\.correlation must be a fraction"),
        (CLASS.format("loss = {enter = 0.1}"), r"classes\.a\.loss\.leave is missing"),
        (CLASS.format("loss = {enter = 0.0, leave = 1}"), r"classes\.a\.loss\.enter must be"),
        (CLASS.format("loss = {enter = 1, leave = 1, bad = 2}"), r"classes\.a\.loss\.bad must be"),
        (CLASS.format("loss = {enter = 1, leave = 1, good = 1}"), r"classes\.a\.loss loses every"),
        (CLASS.format("loss = {enter = 1, leave = 1, x = 1}"), r"classes\.a\.loss\.x is unknown"),
        (CLASS.format("duplicate = -0.1"), r"classes\.a\.duplicate must be a fraction"),
        (CLASS.format("corrupt = 'much'"), r"classes\.a\.corrupt must be a fraction"),
        (CLASS.format("reorder = 0.1"), r"classes\.a\.reorder needs a delay"),
        (CLASS.format("reorder_gap = 5"), r"classes\.a\.reorder_gap is of reorder"),
        (CLASS.format("reorder_gap = 0"), r"classes\.a\.reorder_gap must be"),
        (CLASS.format("reorder_gap = 1.5"), r"classes\.a\.reorder_gap must be a whole"),
        (CLASS.format("limit = 0"), r"classes\.a\.limit must be"),
        (CLASS.format("ways = 'in'"), r"classes\.a\.ways is 'in', and none of send, both"),
        ("seed = -1\n" + CLASS.format(""), "seed must be"),
        ("seed = true\n" + CLASS.format(""), "seed must be a whole number"),
        (CLASS.replace("a]", "'A b']").format(""), r"classes\.A b must be lower-case"),
        (HOST.format("name = 'h'"), r"hosts\[1\]\.class is missing"),
        (HOST.format("class = 'a'"), r"hosts\[1\]\.name is missing"),
        (HOST.format("name = 7\nclass = 'a'"), r"hosts\[1\]\.name must be text"),
        (HOST.format("name = 'h'\nclass = 'b'"), r"hosts 'h'\.class 'b' is none of a"),
        (HOST.format("name = '-h'\nclass = 'a'"), r"hosts '-h'\.name must be lower-case"),
        (HOST.format("name = 'h'\nclass = 'a'\ncount = 0"), r"hosts\[1\]\.count must be"),
        (HOST.format("name = 'h'\nclass = 'a'\ncount = true"), r"hosts\[1\]\.count must be"),
        (HOST.format("name = 'h'\nclass = 'a'\ncount = 99999999"), r"hosts\[1\]\.count must be"),
        (HOST.format("name = 'h'\nclass = 'a'\nip = 1"), r"hosts\[1\]\.ip is unknown"),
        (
            HOST.format("name = 'h'\nclass = 'a'\n[[hosts]]\nname = 'h'\nclass = 'a'"),
            r"hosts 'h'\.name is taken",
        ),
        (
            HOST.format(
                "name = 'h'\nclass = 'a'\ncount = 10000\n[[hosts]]\nname = 'i'\nclass = 'a'"
            ),
            f"hosts: at most {MAX_HOSTS}",
        ),
    ],
)
def test_an_error_names_the_field(text, named):
    with pytest.raises(TopologyError, match=named) as refusal:
        topology_from_toml(text)
    assert isinstance(refusal.value, UsageError)
    assert refusal.value.exit_code == 2
    assert "\n" not in str(refusal.value)


def test_unknown_classes_have_no_path():
    with pytest.raises(TopologyError, match=r"classes\.moon"):
        topology_from_toml(TOWN_AND_COUNTRY).path("town", "moon")


def test_a_small_file_cannot_ask_for_endless_memory():
    """Three million hosts; refused while they are counted, not after."""
    crowd = "[[hosts]]\nname = 'h{0}'\nclass = 'a'\ncount = 6000\n"
    text = "name = 'n'\n[classes.a]\n" + "".join(crowd.format(n) for n in range(500))
    tracemalloc.start()
    try:
        with pytest.raises(TopologyError, match="hosts: at most 10000"):
            topology_from_toml(text)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_too_many_made_by_code_are_refused_too():
    hosts = tuple(Host(f"h{number}", "a") for number in range(MAX_HOSTS + 1))
    with pytest.raises(TopologyError, match="hosts: at most 10000, not 10001"):
        Topology("n", (LatencyClass("a"),), hosts)
    classes = tuple(LatencyClass(f"c{number}") for number in range(MAX_CLASSES + 1))
    with pytest.raises(TopologyError, match="classes: at most 100, not 101"):
        Topology("n", classes, (Host("h", "c0"),))


def test_two_classes_of_one_name_are_refused():
    """TOML itself forbids it in a file; code could still do it."""
    with pytest.raises(TopologyError, match="same name"):
        Topology("n", (LatencyClass("a"), LatencyClass("a")), (Host("h", "a"),))


CLASSES = st.builds(
    lambda delay, jitter, loss, rate: LatencyClass("x", delay, delay * jitter, loss, rate),
    delay=st.floats(0, 10),
    jitter=st.floats(0, 1),
    loss=st.floats(0, 0.999),
    rate=st.none() | st.floats(1, 1e9),
)


@settings(deadline=None)
@given(first=CLASSES, second=CLASSES)
def test_there_and_back_is_the_same_from_either_end(first, second):
    near = LatencyClass("near", first.delay_seconds, first.jitter_seconds, first.loss, first.rate)
    far = LatencyClass("far", second.delay_seconds, second.jitter_seconds, second.loss, second.rate)
    topology = Topology("n", (near, far), (Host("h", "near"),))
    there, back = topology.path("near", "far"), topology.path("far", "near")
    assert there.round_trip_seconds == back.round_trip_seconds
    assert 0 <= there.jitter_seconds <= there.round_trip_seconds
    assert max(first.loss, second.loss) - 1e-12 <= there.loss == pytest.approx(back.loss)
    assert there.loss <= first.loss + second.loss + 1e-12


@settings(deadline=None)
@given(text=st.text(max_size=200))
def test_no_text_does_worse_than_being_refused(text):
    with pytest.raises(TopologyError):
        topology_from_toml(text)


EVERYTHING = """
name = "everything"
seed = 7
[classes.a]
delay = "20ms"
jitter = "5ms"
distribution = "normal"
correlation = 0.25
loss = { enter = 0.01, leave = 0.24, bad = 0.5 }
duplicate = 0.01
corrupt = 0.001
reorder = 0.05
reorder_gap = 3
rate = "8Mbps"
download = "16Mbps"
queue = "50ms"
limit = 500
ways = "both"
[[hosts]]
name = "h"
class = "a"
"""


def test_every_field_is_read():
    topology = topology_from_toml(EVERYTHING)
    assert topology.seed == 7
    assert topology.classes == (
        LatencyClass(
            "a",
            delay_seconds=0.02,
            jitter_seconds=0.005,
            rate=1e6,
            download=2e6,
            queue_seconds=0.05,
            distribution=Distribution.NORMAL,
            correlation=0.25,
            bursts=GilbertElliott(0.01, 0.24, 0.5),
            duplicate=0.01,
            corrupt=0.001,
            reorder=0.05,
            reorder_gap=3,
            limit_packets=500,
            ways=Ways.BOTH,
        ),
    )
    assert all(f"\n{field} = " in EVERYTHING for field in CLASS_FIELDS)


def test_both_ways_a_round_trip_pays_twice_for_each_end():
    both = LatencyClass("a", 0.01, 0.002, 0.1, ways=Ways.BOTH)
    topology = Topology("n", (both, LatencyClass("b", 0.005)), (Host("h", "a"),))
    path = topology.path("a", "b")
    assert path.round_trip_seconds == pytest.approx(0.025)
    assert path.jitter_seconds == pytest.approx(0.004)
    assert path.loss == pytest.approx(1 - 0.9**2)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_a_class_of_which_any_field_can_be_given_anew(preset):
    text = CLASS.format(f"preset = '{preset}'")
    (plain,) = topology_from_toml(text).classes
    assert plain.delay_seconds > 0
    (farther,) = topology_from_toml(text.replace("'\n[[", "'\ndelay = '9s'\n[[")).classes
    assert farther.delay_seconds == 9
    assert farther.rate == plain.rate


def test_bursts_lose_as_the_chain_says():
    """In the bad state a share of enter / (enter + leave) of the time: 0.04 of packets here."""
    assert GilbertElliott(0.01, 0.24).mean == pytest.approx(0.04)
    assert GilbertElliott(0.01, 0.24, 0.5, 0.01).mean == pytest.approx(0.02 + 0.0096)
    # Losses of whole bursts vary more: (1 + memory) / (1 - memory), with memory 0.75 here.
    assert GilbertElliott(0.01, 0.24).inflation == pytest.approx(7.0)
    assert GilbertElliott(0.5, 0.5).inflation == pytest.approx(1.0)
