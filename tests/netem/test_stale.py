import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from netem.backends import TunBackend
from netem.spec import NetworkSpec
from netem.stale import sweep
from netem.standing import bring_up, take_down
from netem.topology import Host, LatencyClass, Topology

pytestmark = pytest.mark.slow

SPEC = NetworkSpec(Topology("t", (LatencyClass("a"),), (Host("one", "a"),)), lifeline=False)


def started(standing):
    """A program in a host, with a child of its own whose end it does not care about."""
    words = ["sh", "-c", "sleep 1000 & echo $!; exec sleep 1000"]
    child = subprocess.Popen(standing.command("one", words), stdout=subprocess.PIPE)
    grandchild = int(child.stdout.readline())
    child.stdout.close()
    return child, grandchild


def test_programs_that_outlive_their_keeper_end_with_the_next_down(tun, tmp_path):
    child, grandchild = started(made := bring_up(tmp_path, "lab", TunBackend(), SPEC))
    os.kill(made.pid, signal.SIGKILL)
    os.waitpid(made.pid, 0)
    assert child.poll() is None
    assert take_down(tmp_path, "lab") == {}
    assert child.wait(timeout=30) == -signal.SIGKILL
    assert not is_alive(grandchild)


def test_they_end_with_the_next_up_of_any_network_and_a_living_one_is_not_touched(tun, tmp_path):
    standing = bring_up(tmp_path, "other", TunBackend(), SPEC)
    kept, _ = started(standing)
    child, grandchild = started(made := bring_up(tmp_path, "lab", TunBackend(), SPEC))
    os.kill(made.pid, signal.SIGKILL)
    os.waitpid(made.pid, 0)
    bring_up(tmp_path, "third", TunBackend(), SPEC)
    try:
        assert child.wait(timeout=30) == -signal.SIGKILL
        assert not is_alive(grandchild)
        assert kept.poll() is None
        assert sweep() == 0
    finally:
        take_down(tmp_path, "third")
        take_down(tmp_path, "other")
    assert kept.wait(timeout=30) == -signal.SIGKILL


KEEPER = "netem.backends.tun_keeper"


@pytest.mark.parametrize("after", [0, 1, 10, 20])
def test_killed_while_it_is_made_nothing_is_left(tun, after, tmp_path):
    """The keeper of a network of 20 hosts is killed after so many of them, or when it is up."""
    hosts = tuple(Host(f"h{n}", "a") for n in range(20))
    spec = NetworkSpec(Topology("t", (LatencyClass("a"),), hosts))
    code = KILLED.format(keeper=KEEPER, after=after)
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
from {keeper} import main
from netem import namespaces
made, make = 0, namespaces.make
def make_or_die():
    global made
    made += 1
    if made > {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    return make()
namespaces.make = make_or_die
from netem.backends import tun_forwarder
tun_forwarder.Forwarder.run = lambda _: os.kill(os.getpid(), signal.SIGKILL)
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
