import pytest

from experiments.errors import LabError, ScenarioError
from experiments.real import emulated
from experiments.real.emulated import Emulation, emulation_for, topology_of
from experiments.real.on_network import engine_on
from experiments.swarms.scenario import Link, Scenario
from netem.backends import Choice, TunBackend, UmlBackend
from netem.errors import NetemError
from netem.topology import Host, LatencyClass, Topology

CHOICE = Choice(TunBackend(), "given")


def town(*names):
    return Topology("town", (LatencyClass("a"),), tuple(Host(name, "a") for name in names))


def test_the_operator_needs_a_host():
    with pytest.raises(ScenarioError, match="'town' has no host 'server'"):
        Emulation(town("one", "two"), CHOICE)


def test_each_viewer_needs_a_host_of_its_own():
    emulation = Emulation(town("one", "server", "two"), CHOICE)
    assert emulation.viewer_hosts == ["one", "two"]
    emulation.check(Scenario(viewers=2))
    with pytest.raises(ScenarioError, match="viewers is 3, and the network 'town' has 2 hosts"):
        emulation.check(Scenario(viewers=3))


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(LabError, match="network: cannot read"):
        engine_on(tmp_path / "none.toml", None, None)


def test_a_network_that_cannot_be_made_is_refused_before_anything_is_started(tmp_path):
    file = tmp_path / "net.toml"
    file.write_text(
        "name = 'n'\nloopback = true\nseed = 1\n[classes.a]\n"
        "[[hosts]]\nname = 'server'\nclass = 'a'\n"
    )
    with pytest.raises(LabError, match="network: the network 'n' cannot be made: kernel cannot do"):
        engine_on(file, None, None)


MIXED = Scenario(
    viewers=4,
    links=(Link(latency_seconds=0.0, share=3), Link(latency_seconds=0.005)),
    server_latency_seconds=0.001,
)


def test_a_scenarios_latencies_become_delays_of_its_machines():
    topology = topology_of(MIXED)
    delays = {
        host.name: topology.latency_class(host.latency_class).delay_seconds
        for host in topology.hosts
    }
    dealt = [viewer.link.latency_seconds for viewer in MIXED.crowd()]
    assert sorted(dealt) == [0.0, 0.0, 0.0, 0.005]
    assert delays == {"server": 0.001, **{f"viewer-{n}": each for n, each in enumerate(dealt)}}
    assert topology_of(Scenario(viewers=4)) is None


def test_its_losses_are_those_of_all_that_its_machines_send():
    lossy = Scenario(viewers=1, links=(Link(loss=0.01),), server_loss=0.02)
    losses = {
        host.name: topology_of(lossy).latency_class(host.latency_class).loss
        for host in topology_of(lossy).hosts
    }
    assert losses == {"server": 0.02, "viewer-0": 0.01}


def test_congestion_control_is_that_of_an_emulated_network(monkeypatch):
    monkeypatch.setattr(emulated, "choose", lambda _: CHOICE)
    reno = {"congestion_control": "reno"}
    assert emulation_for(MIXED.with_(**reno), None).congestion_control == "reno"
    assert emulation_for(MIXED, None).congestion_control is None
    plain = Scenario(viewers=2, **reno)
    with pytest.raises(ScenarioError, match=r"give links\.latency_seconds, too"):
        emulation_for(plain, None)
    with pytest.raises(ScenarioError, match="it is said by --congestion-control"):
        emulation_for(plain, Emulation(town("server", "one", "two"), CHOICE))


def test_without_latencies_there_is_no_network_but_the_one_given():
    plain = Scenario(viewers=2)
    assert emulation_for(plain, None) is None
    given = Emulation(town("server", "one", "two"), CHOICE)
    assert emulation_for(plain, given) is given
    with pytest.raises(ScenarioError, match="must be 0 on a network that has its own"):
        emulation_for(MIXED, given)


def test_where_the_network_cannot_be_had_the_field_is_named(monkeypatch):
    def nothing(_):
        raise NetemError("no luck")

    monkeypatch.setattr(emulated, "choose", nothing)
    with pytest.raises(ScenarioError, match=r"links\.latency_seconds: no luck"):
        emulation_for(MIXED, None)
    monkeypatch.setattr(emulated, "choose", lambda _: Choice(UmlBackend(), "it is here"))
    with pytest.raises(ScenarioError, match="put 'toast-netem guest --memory 4GB' before"):
        emulation_for(MIXED, None)
    monkeypatch.setattr(emulated, "choose", lambda _: CHOICE)
    assert emulation_for(MIXED, None).viewer_hosts == [f"viewer-{n}" for n in range(4)]
