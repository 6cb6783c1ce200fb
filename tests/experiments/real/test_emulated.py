import pytest

from experiments.errors import LabError, ScenarioError
from experiments.real.emulated import Emulation
from experiments.real.on_network import engine_on
from experiments.swarms.scenario import Scenario
from netem.backends import Choice, TunBackend
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
