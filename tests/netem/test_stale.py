import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from netem.backends import KernelBackend, TunBackend
from netem.spec import NetworkSpec
from netem.stale import sweep
from netem.standing import bring_up, take_down
from netem.topology import Host, LatencyClass, Topology

pytestmark = pytest.mark.slow

SPEC = NetworkSpec(Topology("t", (LatencyClass("a"),), (Host("one", "a"),)), lifeline=False)


@pytest.fixture(params=[TunBackend, KernelBackend], ids=["on_tun", "on_kernel"])
def backend(request):
    """Those that are made in this kernel. In a guest, tests/lab/test_netem_uml.py has both."""
    made = request.param()
    if (missing := made.missing()) is not None:
        pytest.skip(f"{made.name}: {missing}")
    return made


def started(standing):
    """A program in a host, with a child of its own whose end it does not care about."""
    words = ["sh", "-c", "sleep 1000 & echo $!; exec sleep 1000"]
    child = subprocess.Popen(standing.command("one", words), stdout=subprocess.PIPE)
    grandchild = int(child.stdout.readline())
    child.stdout.close()
    return child, grandchild


def test_programs_that_outlive_their_keeper_end_with_the_next_down(backend, tmp_path):
    child, grandchild = started(made := bring_up(tmp_path, "lab", backend, SPEC))
    os.kill(made.pid, signal.SIGKILL)
    os.waitpid(made.pid, 0)
    assert child.poll() is None
    assert take_down(tmp_path, "lab") == {}
    assert child.wait(timeout=30) == -signal.SIGKILL
    assert not is_alive(grandchild)


def test_they_end_with_the_next_up_of_any_network_and_a_living_one_is_not_touched(
    backend, tmp_path
):
    standing = bring_up(tmp_path, "other", backend, SPEC)
    kept, _ = started(standing)
    child, grandchild = started(made := bring_up(tmp_path, "lab", backend, SPEC))
    os.kill(made.pid, signal.SIGKILL)
    os.waitpid(made.pid, 0)
    bring_up(tmp_path, "third", backend, SPEC)
    try:
        assert child.wait(timeout=30) == -signal.SIGKILL
        assert not is_alive(grandchild)
        assert kept.poll() is None
        assert sweep() == 0
    finally:
        take_down(tmp_path, "third")
        take_down(tmp_path, "other")
    assert kept.wait(timeout=30) == -signal.SIGKILL


@pytest.mark.parametrize("after", [0, 1, 10, 20])
def test_killed_while_it_is_made_nothing_is_left(backend, after):
    """The keeper of a network of 20 hosts is killed after so many of them, or when it is up."""
    hosts = tuple(Host(f"h{n}", "a") for n in range(20))
    spec = NetworkSpec(Topology("t", (LatencyClass("a"),), hosts))
    code = KILLED.format(name=backend.name, after=after)
    keeper = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        input=spec.to_json() + "\n",
        capture_output=True,
        text=True,
    )
    assert keeper.returncode == -signal.SIGKILL, keeper.stderr
    assert sweep() == 0
    assert namespaces_of("toast-netem") == 0


KILLED = """
import os, signal
from netem import namespaces
from netem.backends.{name}_keeper import main
made, make = 0, namespaces.make
def make_or_die():
    global made
    made += 1
    if made > {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    return make()
namespaces.make = make_or_die
from netem.backends import kernel_keeper, tun_forwarder
for kind in (kernel_keeper._KernelNetwork, tun_forwarder.Forwarder):
    kind.run = lambda _: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def namespaces_of(word):
    """Named namespaces that carry a word: there must never be any."""
    shown = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    return shown.stdout.count(word)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
