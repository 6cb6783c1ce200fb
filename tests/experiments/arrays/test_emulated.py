"""A directory that takes as long as a disk: on a clock that only its own sleeping moves."""

import json

import numpy as np
import pytest

from experiments.arrays.disk import DiskModel, Fault, FaultKind
from experiments.arrays.emulated import EmulatedDisk, FaultFile
from tests.conformance.check_disk import check_disk, check_faulty_disk
from vodserver.errors import DiskError
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

    def make(*faults):
        return EmulatedDisk(
            tmp_path,
            MODEL,
            np.random.default_rng(1),
            faults=lambda: faults,
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
