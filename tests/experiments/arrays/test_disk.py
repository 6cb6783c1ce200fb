"""What a read takes, and what faults add."""

import pytest

from experiments.arrays.disk import SATA_1, DiskModel, Fault, FaultKind, read_seconds
from experiments.errors import ScenarioError

EXTENT = 3_750_000


def seconds(model, *faults, now=0.0, chance=0.5, place=0.5):
    return read_seconds(model, faults, EXTENT, now, place=place, chance=chance)


def test_a_read_costs_an_access_and_its_bytes():
    assert seconds(SATA_1) == pytest.approx(0.017 + EXTENT / (525e6 / 8))


def test_access_times_are_spread_about_their_mean():
    plain = seconds(SATA_1)
    assert seconds(SATA_1, chance=0.0) == pytest.approx(plain - 0.0085)
    assert seconds(SATA_1, chance=1.0) == pytest.approx(plain + 0.0085)


def test_the_outermost_track_is_twice_as_fast_as_the_innermost():
    disk = DiskModel(access_seconds=0.0, zone_share=1 / 3)
    assert seconds(disk, place=1.0) == pytest.approx(2 * seconds(disk, place=0.0))


def test_a_stutter_reads_useless_bytes_too_while_it_is_on():
    fault = Fault(disk=0, share=0.2, begin_seconds=1.0, end_seconds=2.0)
    plain = seconds(SATA_1)
    assert seconds(SATA_1, fault, now=1.5) == pytest.approx(plain + 0.2 * EXTENT / SATA_1.rate)
    assert seconds(SATA_1, fault, now=0.5) == plain
    assert seconds(SATA_1, fault, now=2.0) == plain


def test_a_stalled_read_lasts_until_the_stall_is_over():
    fault = Fault(disk=0, kind=FaultKind.STALL, begin_seconds=1.0, end_seconds=9.0)
    assert seconds(SATA_1, fault, now=3.0) == pytest.approx(seconds(SATA_1) + 6.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiskModel(rate=0.0),
        lambda: DiskModel(jitter_share=2.0),
        lambda: Fault(disk=0, share=-1.0),
        lambda: Fault(disk=0, kind=FaultKind.STALL),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(ScenarioError):
        make()
