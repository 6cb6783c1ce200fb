"""Jobs in processes and on other machines: outcomes, mishaps, and that nothing is left running."""

import multiprocessing
import sys
import time
from contextlib import closing
from itertools import pairwise
from types import SimpleNamespace

import pytest

from experiments.errors import LabError
from experiments.figures.jobs import Job, run_here
from experiments.figures.workers import CpuGate, read_cpu, run_in_processes, run_on_dask
from experiments.swarms.presets import scaled
from experiments.swarms.text import describe
from tests.experiments.figures.fake import FakeEngine


def job(name, picker="hybrid"):
    scenario = scaled("quick", picker=picker).with_(name=name, viewers=2)
    return Job(f"key of {name}", name, describe(scenario))


def nothing(job, now):
    """Nobody wants to know."""


def told_by(outcomes):
    return {
        outcome.job.label: outcome.done.result.offload if outcome.done else outcome.error
        for outcome in outcomes
    }


@pytest.mark.slow
def test_processes_do_what_this_one_does_and_mishaps_stay_where_they_are():
    jobs = [job("a"), job("fails"), job("b", "beta"), job("dies"), job("c"), job("cannot")]
    told = []
    found = told_by(run_in_processes(FakeEngine, 2)(jobs, lambda *what: told.append(what)))
    alone = told_by(run_here(FakeEngine)([each for each in jobs if each.label != "dies"], nothing))
    assert found.pop("dies") == "its process ended in the middle; what it wrote above says why"
    assert found == alone
    assert found["fails"] == "the tracker did not start"
    of_a = [now and now.seconds for each, now in told if each.label == "a"]
    assert of_a == [None, 5.0, 10.0]
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_whoever_stops_listening_ends_the_processes():
    runner = run_in_processes(FakeEngine, 2)
    began = time.monotonic()
    with closing(runner([job("lasts"), job("a"), job("b")], nothing)) as outcomes:
        assert next(outcomes).job.label == "a"
    assert multiprocessing.active_children() == []
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_a_gate_that_is_shut_while_something_runs_makes_one_run_at_a_time():
    most = [0]

    def gate(running):
        most.append(running)
        return running == 0

    found = told_by(run_in_processes(FakeEngine, 4, gate)([job("a"), job("b"), job("c")], nothing))
    assert len(found) == 3
    assert max(most) <= 1


class Machine:
    """A clock and a processor of which every run takes a share."""

    def __init__(self, share):
        self.now, self.busy, self.share, self.running = 0.0, 0.0, share, 0

    def tick(self, seconds):
        self.now += seconds
        self.busy += seconds * self.share * self.running

    def read(self):
        return self.busy, self.now


@pytest.mark.parametrize(("share", "most"), [(0.8, 1), (0.4, 1), (0.3, 2), (0.2, 3), (0.1, 7)])
def test_runs_begin_while_the_processor_has_room(share, most):
    """Below 70 %, once the runs that are on have grown up."""
    machine = Machine(share)
    gate = CpuGate(60.0, read=machine.read, clock=lambda: machine.now)
    begun = []
    for _ in range(2000):
        if gate(machine.running):
            machine.running += 1
            begun.append(machine.now)
        machine.tick(1.0)
    assert machine.running == most
    assert all(later - sooner >= 60.0 for sooner, later in pairwise(begun))


def test_the_first_run_always_begins():
    machine = Machine(1.0)
    gate = CpuGate(60.0, read=machine.read, clock=lambda: machine.now)
    assert gate(0)
    machine.running = 1
    machine.tick(100.0)
    assert not gate(1)
    assert gate(0)


def test_the_processors_time_is_read_as_the_kernel_tells_it(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 5 50 800 20 1 2 3 40 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert read_cpu(stat) == (100 + 5 + 50 + 1 + 2 + 3, 981)
    busy, total = read_cpu()
    assert 0 <= busy <= total


# -- Dask ------------------------------------------------------------------------------------------


class FakeFuture:
    def __init__(self, call):
        self._error = self._value = None
        try:
            self._value = call()
        except LabError as error:
            self._error = error

    def exception(self):
        return self._error

    def result(self):
        return self._value


class FakeClient:
    """As much of Dask's client as is used; its workers are this process."""

    loop = "its event loop"

    def __init__(self, address, timeout, set_as_default):
        if address == "tcp://nowhere:1":
            raise OSError("timed out")
        self.cancelled = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, function, *arguments, pure):
        assert not pure
        return FakeFuture(lambda: function(*arguments))

    def cancel(self, futures, force):
        self.cancelled = futures


@pytest.fixture
def dask(monkeypatch):
    def as_completed(futures, loop):
        assert loop == FakeClient.loop  # without it Dask wants a client that is the default
        return list(futures)[::-1]

    module = SimpleNamespace(Client=FakeClient, as_completed=as_completed)
    monkeypatch.setitem(sys.modules, "distributed", module)


def test_other_machines_do_what_this_one_does(dask):
    jobs = [job("a"), job("fails"), job("b", "beta")]
    found = told_by(run_on_dask(FakeEngine, "tcp://there:8786")(jobs, nothing))
    assert list(found) == ["b", "fails", "a"]
    assert found.pop("fails") == "the tracker did not start"
    alone = told_by(run_here(FakeEngine)([jobs[0], jobs[2]], nothing))
    assert found == alone


def test_a_scheduler_that_is_not_there(dask):
    with pytest.raises(LabError, match="no Dask scheduler at tcp://nowhere:1"):
        next(run_on_dask(FakeEngine, "tcp://nowhere:1")([job("a")], nothing))


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(LabError, match=r"pip install 'toast-vod\[lab-dask\]'"):
        run_on_dask(FakeEngine, "tcp://there:8786")
