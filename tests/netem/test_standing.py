import os
import signal
import subprocess
import time

import pytest

from netem.backends import TunBackend
from netem.errors import NetemError
from netem.spec import NetworkSpec
from netem.standing import bring_up, find, take_down
from netem.topology import Host, LatencyClass, Topology

SPEC = NetworkSpec(Topology("t", (LatencyClass("a"),), (Host("one", "a"),)), lifeline=False)
BACKEND = TunBackend()


@pytest.mark.slow
def test_up_used_and_down(tun, tmp_path):
    made = bring_up(tmp_path, "lab", BACKEND, SPEC)
    try:
        found = find(tmp_path, "lab")
        assert found == made
        assert found.topology == SPEC.topology
        words = ["sh", "-c", "echo in; exec sleep 1000"]
        child = subprocess.Popen(found.command("one", words), stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"in\n"
        child.stdout.close()
        with pytest.raises(NetemError, match="'lab' is up: end it with"):
            bring_up(tmp_path, "lab", BACKEND, SPEC)
        with pytest.raises(NetemError, match="no host 'two'; there are one"):
            found.address("two")
    finally:
        report = take_down(tmp_path, "lab")
    assert report["cpu_seconds"] >= 0
    assert child.wait(timeout=5) == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
    with pytest.raises(NetemError, match="no network 'lab' is up"):
        find(tmp_path, "lab")


@pytest.mark.slow
def test_a_killed_keeper_leaves_a_file_that_deceives_nobody(tun, tmp_path):
    made = bring_up(tmp_path, "lab", BACKEND, SPEC)
    os.kill(made.pid, signal.SIGKILL)
    os.waitpid(made.pid, 0)
    with pytest.raises(NetemError, match="no network 'lab' is up"):
        find(tmp_path, "lab")
    again = bring_up(tmp_path, "lab", BACKEND, SPEC)
    assert again.pid != made.pid
    os.kill(again.pid, signal.SIGKILL)
    os.waitpid(again.pid, 0)
    assert take_down(tmp_path, "lab") == {}
    assert not list(tmp_path.iterdir())


def test_a_network_that_cannot_be_made_leaves_nothing(tmp_path):
    with pytest.raises(NetemError, match="its keeper died"):
        bring_up(tmp_path, "lab", TunBackend(keeper=("true",)), SPEC)
    assert not list(tmp_path.iterdir())


def test_a_keeper_that_fails_says_why(tmp_path):
    words = ("sh", "-c", """echo '{"event": "failed", "reason": "no luck"}'; sleep 1000""")
    began = time.monotonic()
    with pytest.raises(NetemError, match="cannot be made: no luck"):
        bring_up(tmp_path, "lab", TunBackend(keeper=words), SPEC)
    assert time.monotonic() - began < 5
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "../up", "Lab", "a b"])
def test_a_name_is_not_a_path(tmp_path, name):
    with pytest.raises(NetemError, match="is no name"):
        find(tmp_path, name)


def test_down_without_up(tmp_path):
    with pytest.raises(NetemError, match="no network 'lab' is up"):
        take_down(tmp_path, "lab")
