"""A directory that takes as long as a disk: on a clock that only its own sleeping moves."""

import json

import numpy as np
import pytest

from experiments.arrays.disk import DiskModel, Fault, FaultKind
from experiments.arrays.emulated import EmulatedDisk, FaultFile, ReadMemory
from tests.conformance.check_disk import check_disk, check_faulty_disk
from vodserver.errors import DiskError
from vodserver.store.disks import RealDisk
from vodserver.store.layout import extent_path

MODEL = DiskModel(access_seconds=0.1, rate=1000.0, jitter_share=0.0)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(tmp_path, clock):
    path = extent_path(tmp_path, "t", 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(range(250)) * 8)

    def make(*faults, memory=None):
        return EmulatedDisk(
            tmp_path,
            MODEL,
            np.random.default_rng(1),
            faults=lambda: faults,
            memory=memory,
            clock=clock,
            sleep=clock.sleep,
        )

    return make


def test_it_is_a_disk(tmp_path):
    fast = DiskModel(access_seconds=0.0, rate=1e12)
    check_disk(lambda path: EmulatedDisk(path, fast, np.random.default_rng(1)), tmp_path)


def test_a_read_takes_an_access_and_its_bytes(make, clock):
    make().read(("t", 0), 500, 1000)
    assert clock.now == pytest.approx(101.1)


def test_what_follows_needs_no_access(make, clock):
    disk = make()
    disk.read(("t", 0), 0, 1000)
    disk.read(("t", 0), 1000, 500)
    assert clock.now == pytest.approx(101.6)


def test_a_sleep_that_was_too_long_is_made_up_for(make, clock):
    disk = make()
    disk.read(("t", 0), 0, 1000)
    clock.now += 0.03  # the machine had other things to do
    disk.read(("t", 0), 0, 1000)
    assert clock.now == pytest.approx(102.2)


def test_its_own_sleep_may_be_longer_still(make, clock):
    asleep = clock.sleep
    disk = make()
    disk._sleep = lambda seconds: asleep(seconds + 0.5)
    disk.read(("t", 0), 0, 1000)
    disk.read(("t", 0), 0, 1000)
    assert clock.now == pytest.approx(102.7)


@pytest.mark.parametrize(("files", "together"), [(0.4, 2.2), (1.0, 2.2), (1.5, 3.0)])
def test_what_the_files_take_is_no_time_of_its_own(make, clock, monkeypatch, files, together):
    """On a slow machine a run must not have slower disks; what is longer is made up for."""
    read = RealDisk.read

    def slowly(self, *args, **kwargs):
        clock.now += files
        return read(self, *args, **kwargs)

    monkeypatch.setattr(RealDisk, "read", slowly)
    disk = make()
    disk.read(("t", 0), 0, 1000)
    disk.read(("t", 0), 0, 1000)
    assert clock.now == pytest.approx(100 + together)


def test_what_was_read_last_is_in_memory(make):
    disk = make(memory=ReadMemory(1))
    assert disk.peek(("t", 0), 0, 1) is None
    read = bytes(disk.read(("t", 0), 500, 100))
    read += bytes(disk.read(("t", 0), 600, 100))
    assert bytes(disk.peek(("t", 0), 550, 100)) == read[50:150]
    assert disk.peek(("t", 0), 499, 10) is None
    assert disk.peek(("t", 0), 650, 51) is None
    disk.read(("t", 0), 0, 100)  # elsewhere: begins anew
    assert disk.peek(("t", 0), 500, 100) is None


def test_memory_of_all_disks_keeps_what_was_used_last(tmp_path):
    memory = ReadMemory(2)
    a, b = tmp_path / "a", tmp_path / "b"
    memory.learn(a, ("t", 0), 0, memoryview(b"old"))
    memory.learn(b, ("t", 0), 0, memoryview(b"new"))
    assert bytes(memory.peek(a, ("t", 0), 0, 3)) == b"old"
    memory.learn(b, ("t", 1), 0, memoryview(b"one"))
    assert memory.peek(b, ("t", 0), 0, 3) is None
    assert bytes(memory.peek(a, ("t", 0), 1, 2)) == b"ld"


def test_wrong_bytes_are_not_kept(make):
    disk = make(Fault(disk=0, kind=FaultKind.CORRUPT), memory=ReadMemory(1))
    disk.read(("t", 0), 0, 100)
    assert disk.peek(("t", 0), 0, 100) is None


def test_a_stutter_takes_longer(make, clock):
    make(Fault(disk=0, share=1.0)).read(("t", 0), 0, 1000)
    assert clock.now == pytest.approx(102.1)


@pytest.mark.parametrize("kind", [FaultKind.DEATH, FaultKind.ERROR])
def test_a_disk_that_fails_says_so(make, kind):
    check_faulty_disk(make(Fault(disk=0, kind=kind, share=1.0)), ("t", 0))


def test_corruption_is_silent(make):
    right = bytes(make().read(("t", 0), 0, 100))
    wrong = bytes(make(Fault(disk=0, kind=FaultKind.CORRUPT)).read(("t", 0), 0, 100))
    assert wrong != right
    assert wrong[1:] == right[1:]


def test_a_stall_ends_when_it_is_switched_off(tmp_path, make, clock):
    make()
    file = tmp_path / "faults.json"
    file.write_text(json.dumps([{"disk": 0, "kind": "error", "share": 1.0}]))
    faults = FaultFile(file)
    disk = EmulatedDisk(
        tmp_path,
        MODEL,
        np.random.default_rng(1),
        faults=lambda: faults.of(0),
        clock=clock,
        sleep=clock.sleep,
    )
    with pytest.raises(DiskError, match="Input/output error"):
        disk.read(("t", 0), 0, 10)
    other = tmp_path / "new"
    other.write_text("[]")
    other.replace(file)
    assert len(disk.read(("t", 0), 0, 10)) == 10
    file.unlink()
    assert faults.of(0) == []
