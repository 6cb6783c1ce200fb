import struct

import pytest
from pyroute2.netlink.rtnl.tcmsg import sched_netem

from netem.backends.qdisc import _netem_options, _tbf_options
from netem.distributions import STEPS, Distribution
from netem.topology import GilbertElliott, LatencyClass


def attributes(options):
    """By number, the data of each attribute behind the head of `struct tc_netem_qopt`."""
    found, at = {}, 24
    while at < len(options):
        length, kind = struct.unpack_from("=HH", options, at)
        found[kind & 0x7FFF] = options[at + 4 : at + length]
        at += length + -length % 4
    return found


def test_netem_is_told_as_pyroute2_reads_it():
    what = LatencyClass("a", 0.02, loss=0.25, duplicate=0.5, reorder=0.1, reorder_gap=3)
    packed = _netem_options(what)
    read = sched_netem.options(struct.pack("=HH", len(packed) + 4, 2) + packed)
    read.decode()
    assert (read["limit"], read["gap"]) == (100_000, 3)
    assert read["loss"] == pytest.approx(0.25 * 2**32, rel=1e-6)
    assert read["duplicate"] == pytest.approx(0.5 * 2**32, rel=1e-6)
    share = read.get_attr("TCA_NETEM_REORDER")["prob_reorder"]
    assert share == pytest.approx(0.1 * 2**32, rel=1e-6)


def test_delays_are_in_nanoseconds_and_a_distribution_is_a_table():
    found = attributes(_netem_options(LatencyClass("a", 0.02, 1e-6)))
    assert struct.unpack("=q", found[10]) == (20_000_000,)
    assert struct.unpack("=q", found[11]) == (1000,)
    assert 2 not in found
    normal = LatencyClass("a", 0.02, 0.001, distribution=Distribution.NORMAL)
    assert len(attributes(_netem_options(normal))[2]) == 2 * STEPS


def test_bursts_are_told_by_what_is_kept_while_bad():
    found = attributes(_netem_options(LatencyClass("a", bursts=GilbertElliott(0.1, 0.2, 0.7, 0.0))))
    inner = struct.unpack("=HHIIII", found[5])
    assert inner[:2] == (20, 2)
    assert [value / 2**32 for value in inner[2:]] == pytest.approx([0.1, 0.2, 0.3, 0.0], abs=1e-6)


def test_a_rate_has_room_for_the_queue_and_a_burst_of_two_packets_at_least():
    options = _tbf_options(125_000.0, 0.1)
    assert struct.unpack_from("=I", options, 4 + 8) == (125_000,)
    assert struct.unpack_from("=I", options, 4 + 24) == (12_500,)
    assert struct.unpack_from("=I", options, len(options) - 4) == (3000,)
