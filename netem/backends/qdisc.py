"""Queueing disciplines on one interface, set by netlink: `netem`, and `tbf` for a rate.

pyroute2 has no names for a delay's distribution and for losses in bursts, and takes no bytes in
their place; so the one request that is needed is packed here, as <linux/rtnetlink.h> and
<linux/pkt_sched.h> have it.
"""

import errno
import os
import socket
import struct
from typing import Final, Self

from netem.distributions import Distribution, table
from netem.errors import NetemError
from netem.spec import MTU_BYTES
from netem.topology import LatencyClass

__all__ = ["Shaping"]

_ROOT: Final = 0xFFFFFFFF
_NETEM: Final = 0x10000  # handle 1:
_TBF: Final = 0x100000  # handle 10:
_OUTER_TBF: Final = 0x200000  # handle 20:
_ETHERNET_BYTES: Final = 14
_BURST_SECONDS: Final = 0.005
_LEAST_BURST_BYTES: Final = 2 * MTU_BYTES
# Attributes of TCA_OPTIONS of netem.
_CORR, _DELAY_DIST, _REORDER, _CORRUPT, _LOSS, _LATENCY64, _JITTER64 = 1, 2, 3, 4, 5, 10, 11
_LOSS_GE: Final = 2  # NETEM_LOSS_GE
_TBF_PARMS, _TBF_BURST = 1, 6
# Of rtnetlink(7).
_RTM_NEWQDISC: Final = 36
_NEW: Final = 0x0001 | 0x0004 | 0x0200 | 0x0400  # NLM_F_REQUEST, _ACK, _EXCL, _CREATE
_TCA_KIND, _TCA_OPTIONS, _TCA_STAB, _TCA_STAB_BASE = 1, 2, 8, 1
_NESTED: Final = 0x8000


class Shaping:
    """Netlink of the namespace in which it is made."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def shape(
        self, index: int, what: LatencyClass, *, rate: float | None, is_plain: bool = False
    ) -> None:
        """Do to all that leaves an interface what a class says.

        Args:
            index: of the interface, which has none but its default discipline.
            what: the class.
            rate: bytes per second, or None for no limit.
            is_plain: whether nothing but the rate matters.

        Raises:
            NetemError: the kernel refuses.
        """
        parent = _ROOT
        if not is_plain and _asks(what):
            if rate is not None and what.reorder:
                # `netem` sends what it lets overtake past the discipline inside it, so one outside
                # has to count these packets, too; the inner one keeps the queue short.
                outer = _tbf_options(rate, what.queue_seconds)
                self._add(index, "tbf", parent, _OUTER_TBF, outer)
                parent = _OUTER_TBF + 1
            self._add(index, "netem", parent, _NETEM, _netem_options(what))
            parent = _NETEM + 1
        if rate is not None:
            self._add(index, "tbf", parent, _TBF, _tbf_options(rate, what.queue_seconds))

    def _add(self, index: int, kind: str, parent: int, handle: int, options: bytes) -> None:
        # struct tcmsg, then what it is and how.
        body = struct.pack("=BBHiIII", socket.AF_UNSPEC, 0, 0, index, handle, parent, 0)
        body += _attribute(_TCA_KIND, kind.encode() + b"\0") + _attribute(_TCA_OPTIONS, options)
        if parent == _ROOT:
            body += _attribute(_TCA_STAB, _size_table())
        # struct nlmsghdr.
        self._socket.send(struct.pack("=IHHII", 16 + len(body), _RTM_NEWQDISC, _NEW, 1, 0) + body)
        (code,) = struct.unpack_from("=i", self._socket.recv(8192), 16)
        if code:
            why = "it has no such module" if -code == errno.ENOENT else os.strerror(-code)
            raise NetemError(
                f"the kernel refuses a queueing discipline of kind {kind}: {why}; see"
                " 'toast-netem doctor'"
            )


def _asks(what: LatencyClass) -> bool:
    return any(
        (what.delay_seconds, what.loss, what.bursts, what.duplicate, what.corrupt, what.reorder)
    )


def _netem_options(what: LatencyClass) -> bytes:
    jitter = round(what.jitter_seconds * 1e9)
    gap = what.reorder_gap if what.reorder else 0
    # struct tc_netem_qopt; its own latency and jitter are too coarse and given again below.
    options = struct.pack(
        "=IIIIII", 0, what.limit_packets, _share(what.loss), gap, _share(what.duplicate), 0
    )
    options += _attribute(_LATENCY64, struct.pack("=q", round(what.delay_seconds * 1e9)))
    if jitter:
        options += _attribute(_JITTER64, struct.pack("=q", jitter))
        if what.distribution is not Distribution.UNIFORM:
            values = table(what.distribution)
            options += _attribute(_DELAY_DIST, struct.pack(f"={len(values)}h", *values))
    if what.reorder:
        options += _attribute(_REORDER, struct.pack("=II", _share(what.reorder), 0))
    if what.corrupt:
        options += _attribute(_CORRUPT, struct.pack("=II", _share(what.corrupt), 0))
    if (bursts := what.bursts) is not None:
        # struct tc_netem_gemodel: into the bad state, out of it, kept while bad, lost while good.
        shares = map(_share, (bursts.enter, bursts.leave, 1.0 - bursts.bad, bursts.good))
        options += _attribute(_LOSS | _NESTED, _attribute(_LOSS_GE, struct.pack("=IIII", *shares)))
    return options


def _tbf_options(rate: float, queue_seconds: float) -> bytes:
    """TCA_TBF_PARMS and TCA_TBF_BURST (<linux/pkt_sched.h>); `tbf` reckons no rate table itself."""
    burst = max(_LEAST_BURST_BYTES, round(rate * _BURST_SECONDS))
    limit = max(MTU_BYTES, round(rate * queue_seconds))
    # struct tc_ratespec: an Ethernet cell log of 0 and no overhead, which the size table holds.
    speed = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, min(round(rate), 0xFFFFFFFF))
    none = struct.pack("=BBHhHI", 0, 0, 0, 0, 0, 0)
    parameters = speed + none + struct.pack("=III", limit, 0, 0)
    return _attribute(_TBF_PARMS, parameters) + _attribute(_TBF_BURST, struct.pack("=I", burst))


def _size_table() -> bytes:
    """A packet counts for its IP bytes: struct tc_sizespec with Ethernet's header taken off."""
    return _attribute(
        _TCA_STAB_BASE, struct.pack("=BBhiIIII", 0, 0, 0, -_ETHERNET_BYTES, 0, 0, 0, 0)
    )


def _share(fraction: float) -> int:
    return min(0xFFFFFFFF, round(fraction * 0xFFFFFFFF))


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
