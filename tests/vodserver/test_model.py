"""The closed form against the figures of its source."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.errors import UsageError
from vodserver.model import (
    ETHERNET_PAYLOAD,
    DiskFigures,
    block_seconds,
    capacity,
    disk_streams,
    disks_needed,
    link_streams,
    rotational_delay,
)

MBPS = 1e6 / 8
SATA_1 = DiskFigures(0.017, 525 * MBPS)
SATA_300 = DiskFigures(0.016, 446 * MBPS)
TWO_GIGABITS = 1.9e9 / 8

FIGURES = st.builds(DiskFigures, st.floats(0.0001, 0.1), st.floats(1e6, 1e10))
RATES = st.floats(1e4, 1e8)
BUFFERS = st.floats(0.1, 60)


@pytest.mark.parametrize(
    ("disk", "disks", "bit_rate", "streams"),
    [
        # t_b = 5 s; D t_b / (t_a + r_c t_b / r_d), worked out by hand
        (SATA_1, 1, 6, 67.4),
        (SATA_1, 8, 6, 539.5),
        (SATA_300, 1, 6, 60.04),
        (SATA_300, 8, 6, 480.4),
        (SATA_300, 8, 25, 135.0),
        (SATA_300, 4, 1, 734.8),
    ],
)
def test_streams_of_the_sources_disks(disk, disks, bit_rate, streams):
    assert disk_streams([disk] * disks, bit_rate * MBPS, 5.0) == pytest.approx(streams, rel=1e-3)


@pytest.mark.parametrize(("bit_rate", "modelled", "measured"), [(6, 316, 290), (25, 76, 74)])
def test_the_sources_eight_disks_are_limited_by_their_two_links(bit_rate, modelled, measured):
    """The prototype's 290 and 74 streams, within the 11 % that the source found on average."""
    found = capacity([SATA_300] * 8, bit_rate * MBPS, 5.0, link_rate=TWO_GIGABITS)

    assert found.limit == "link"
    assert found.streams == modelled
    assert abs(measured / found.streams - 1) < 0.11


def test_the_sources_disks_of_chapter_4_are_limited_by_disks():
    """Eight of 17 ms and 525 Mb/s behind four gigabit links."""
    link = 4 * 1e9 / 8 * ETHERNET_PAYLOAD
    found = capacity([SATA_1] * 8, 6 * MBPS, 5.0, link_rate=link)

    assert (found.streams, found.limit) == (539, "disks")
    assert found.link_streams == pytest.approx(632.7, abs=0.1)


def test_a_gigabit_carries_949_megabits():
    assert link_streams(1e9 / 8 * ETHERNET_PAYLOAD, 6 * MBPS) == pytest.approx(949 / 6)


def test_four_disks_share_a_bus():
    """On the SATA-1 machine each of four disks reads 431 Mb/s: 17 % fewer streams of 25 Mb/s."""
    alone = disk_streams([SATA_1] * 4, 25 * MBPS, 5.0)
    shared = disk_streams([DiskFigures(0.017, 431 * MBPS)] * 4, 25 * MBPS, 5.0)

    assert shared / alone == pytest.approx(0.8309, abs=1e-3)


def test_an_extent_of_five_seconds_of_dvd_costs_74_milliseconds():
    assert block_seconds(SATA_1, 6 * MBPS, 5.0) == pytest.approx(0.017 + 30 / 525)


def test_half_a_turn_at_7200_rpm_is_4_ms():
    assert rotational_delay(7200) == pytest.approx(0.004167, abs=1e-6)


@given(FIGURES, RATES, BUFFERS, st.integers(1, 64), st.integers(2, 64))
def test_striping_never_serves_more(disk, rate, buffer, disks, stripe):
    """And so disks are run as independent units (the source's section 3.1)."""
    array = [disk] * max(disks, stripe)

    assert disk_streams(array, rate, buffer, stripe=stripe) < disk_streams(array, rate, buffer)


@given(FIGURES, RATES, BUFFERS, st.integers(1, 500), st.integers(1, 4))
def test_disks_and_streams_are_each_others_inverse(disk, rate, buffer, disks, stripe):
    disks = max(disks, stripe)
    streams = disk_streams([disk] * disks, rate, buffer, stripe=stripe)

    assert disks_needed(streams, disk, rate, buffer, stripe=stripe) == disks
    assert disks_needed(streams * 1.001, disk, rate, buffer, stripe=stripe) == disks + 1


@given(FIGURES, RATES, BUFFERS, st.integers(1, 64))
def test_disks_of_several_kinds_add_up(disk, rate, buffer, disks):
    alone = disk_streams([disk], rate, buffer)

    assert disk_streams([disk] * disks, rate, buffer) == pytest.approx(disks * alone)


@given(FIGURES, RATES, BUFFERS, st.integers(1, 64), st.one_of(st.none(), st.floats(1e5, 1e11)))
def test_capacity_is_the_lesser_of_both(disk, rate, buffer, disks, link):
    found = capacity([disk] * disks, rate, buffer, link_rate=link)

    limits = [found.disk_streams] + ([] if link is None else [found.link_streams])
    assert found.streams <= min(limits) * (1 + 1e-9) < (found.streams + 1) * (1 + 1e-8)
    assert found.limit == ("link" if min(limits) < found.disk_streams else "disks")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DiskFigures(-0.001, 1e6), "access time"),
        (lambda: DiskFigures(math.nan, 1e6), "access time"),
        (lambda: DiskFigures(0.01, 0.0), "rate"),
        (lambda: disk_streams([], 1e6, 5.0), "at least one"),
        (lambda: disk_streams([SATA_1], 1e6, 5.0, stripe=2), "2 wide"),
        (lambda: disk_streams([SATA_1], 0.0, 5.0), "stream rate"),
        (lambda: disk_streams([SATA_1], 1e6, math.inf), "buffer seconds"),
        (lambda: disk_streams([SATA_1], 1e6, 5.0, stripe=0), "stripe"),
        (lambda: disks_needed(0, SATA_1, 1e6, 5.0), "streams"),
        (lambda: link_streams(-1.0, 1e6), "link rate"),
        (lambda: rotational_delay(0), "turns per minute"),
    ],
)
def test_figures_that_no_array_has_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()
