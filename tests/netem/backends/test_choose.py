from dataclasses import replace

import pytest

from netem.backends import BACKENDS, KernelBackend, TunBackend, UmlBackend, choose
from netem.effects import Effect
from netem.errors import NetemError
from netem.topology import Host, LatencyClass, Topology
from tests.conformance.check_network import check_refusals

LOSSY = Topology("lossy", (LatencyClass("a", loss=0.1),), (Host("one", "a"),))


class There(TunBackend):
    """It lacks nothing on any machine."""

    def missing(self):
        return None


class Missing(TunBackend):
    """It could do it, elsewhere."""

    def missing(self):
        return "it needs luck"


def test_the_first_that_can_do_everything_is_taken_and_says_why():
    poor = replace(There(), name="poor", effects=frozenset({Effect.DELAY}))
    unlucky = replace(Missing(), name="unlucky")
    rich = replace(There(), name="rich", effects=frozenset(Effect))
    choice = choose(LOSSY, backends=(poor, unlucky, rich, There()))
    assert choice.backend is rich
    assert choice.why == (
        "poor cannot do loss; unlucky: it needs luck; rich: it can do all that is asked"
    )
    assert choose(LOSSY, "auto", backends=(poor, rich)).backend is rich
    assert choose(LOSSY, "tun", backends=(poor, rich, There())).why == "tun: it was asked for"


def test_a_refusal_names_each_lack():
    poor = replace(There(), name="poor", effects=frozenset({Effect.DELAY}))
    with pytest.raises(NetemError) as refusal:
        choose(LOSSY, backends=(Missing(), poor))
    assert str(refusal.value) == (
        "the network 'lossy' cannot be made: tun: it needs luck; poor cannot do loss"
    )


def test_an_unknown_one_is_named():
    with pytest.raises(NetemError, match="no backend 'magic': known are kernel, tun, uml"):
        choose(LOSSY, "magic", BACKENDS)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_what_it_cannot_do_is_refused_by_name(backend):
    check_refusals(backend)


def test_without_root_it_says_so(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "needs root: run it with sudo" in KernelBackend().missing()
    assert "needs root: run it with sudo" in TunBackend().missing()


def test_without_a_tun_device_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "this kernel has no TUN driver" in TunBackend(device=str(tmp_path / "tun")).missing()


def test_without_the_guest_s_kernel_its_package_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "apt-get install user-mode-linux" in UmlBackend().missing()


def test_a_kernel_without_netem_is_found_out_and_nothing_left():
    """Whatever this machine is: the answer is none, or one of those that can be expected."""
    missing = KernelBackend().missing()
    assert missing is None or "netem" in missing or "namespace" in missing
