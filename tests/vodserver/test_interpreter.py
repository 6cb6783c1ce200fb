"""Python's own pauses are short: the collector's, and those of threads that wait for each other."""

import gc
import subprocess
import sys

import pytest

from vodserver.interpreter import settle_interpreter


@pytest.fixture
def as_before():
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("as_before")
def test_what_lives_when_the_server_is_ready_is_not_looked_at_again():
    kept = [[] for _ in range(1000)]
    settle_interpreter()

    assert gc.get_freeze_count() > len(kept)
    assert not any(each is kept for each in gc.get_objects())
    assert gc.get_threshold()[2] > 100
    assert sys.getswitchinterval() < 0.001


def test_garbage_in_circles_is_still_found():
    code = (
        "import gc, weakref\n"
        "from vodserver.interpreter import settle_interpreter\n"
        "settle_interpreter()\n"
        "class Node: pass\n"
        "node = Node(); node.itself = node; gone = weakref.ref(node); del node\n"
        "for _ in range(50_000): [].append([])\n"
        "keep = [[] for _ in range(100_000)]\n"
        "print(gone() is None)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "True\n"
