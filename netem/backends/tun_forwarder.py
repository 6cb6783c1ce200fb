"""Takes packets from every host's TUN device, and gives each to its receiver in time.

Chance is seeded for each host by itself, so the n-th packet that a host sends meets the same fate
in every run with the same seed.
"""

import contextlib
import ctypes
import heapq
import os
import random
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from netem.shaper import Shaper, flip_bit
from netem.spec import NetworkSpec

__all__ = ["Forwarder", "ForwarderReport"]

_CLOCK_MONOTONIC: Final = 1
_NONBLOCK_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC
_TIMER_ABSTIME: Final = 1  # <sys/timerfd.h>
_AT_ONCE_SECONDS: Final = 20e-6
"""Packets due within this time go now: to sleep and to wake up takes longer."""
_LONGEST_PACKET: Final = 65_536
_BATCH: Final = 32
_IPV4_HEADER_BYTES: Final = 20
_MOST_HELD_BYTES: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class ForwarderReport:
    """What happened to all packets.

    Attributes:
        forwarded: given to their receivers.
        lost: by chance, as asked for.
        dropped: at the queue of a limited rate, or because too many were on their way.
        duplicated: by chance, as asked for.
        corrupted: likewise.
        reordered: sent at once instead of delayed, likewise.
        refused: to nobody, not understood, or not taken by the receiver's device.
        held_full: because too much was under way for the memory that we allow ourselves.
        late_seconds_most: longest that a packet came too late, by our own clock.
    """

    forwarded: int = 0
    lost: int = 0
    dropped: int = 0
    duplicated: int = 0
    corrupted: int = 0
    reordered: int = 0
    refused: int = 0
    held_full: int = 0
    late_seconds_most: float = 0.0


class Forwarder:
    """Moves packets between open TUN devices until something makes it stop.

    Args:
        spec: the network.
        devices: open TUN device, not blocking, of each host.
        lifeline: an open file; `run` returns when it comes to its end. None for none.
    """

    def __init__(
        self, spec: NetworkSpec, devices: Mapping[str, int], lifeline: int | None = None
    ) -> None:
        self._lifeline = lifeline
        addresses = spec.addresses()
        self._out: dict[int, Shaper] = {}
        self._in: dict[int, Shaper] = {}
        self._to: dict[bytes, int] = {}
        for host in spec.topology.hosts:
            what = spec.topology.latency_class(host.latency_class)
            device = devices[host.name]
            chance = f"{spec.chance_seed}/{host.name}"
            self._out[device] = Shaper.sending(what, random.Random(chance))  # noqa: S311
            receiving = Shaper.receiving(what, random.Random(f"{chance}/in"))  # noqa: S311
            if receiving is not None:
                self._in[device] = receiving
            self._to[IPv4Address(addresses[host.name]).packed] = device
        # Due time, number, receiver, whether the receiver's own limit is still to come, packet.
        self._held: list[tuple[float, int, int, bool, bytes]] = []
        self._held_bytes = 0
        self._number = 0
        self._report = ForwarderReport()
        self._timer = _Timer()

    def run(self) -> None:
        """Forward until the lifeline ends, or an exception (a signal's) comes."""
        poll = select.epoll()
        try:
            for device in self._out:
                poll.register(device, select.EPOLLIN)
            poll.register(self._timer.descriptor, select.EPOLLIN)
            if self._lifeline is not None:
                poll.register(self._lifeline, select.EPOLLIN | select.EPOLLHUP)
            while True:
                for descriptor, _ in poll.poll():
                    if descriptor in self._out:
                        self._take(descriptor)
                    elif descriptor == self._timer.descriptor:
                        self._timer.quiet()
                    elif not os.read(descriptor, 4096):
                        return
                self._give()
        finally:
            poll.close()
            self._timer.close()

    def report(self) -> ForwarderReport:
        """What happened so far."""
        shapers = [*self._out.values(), *self._in.values()]
        self._report.lost = sum(shaper.lost for shaper in shapers)
        self._report.dropped = sum(shaper.dropped for shaper in shapers)
        self._report.duplicated = sum(shaper.duplicated for shaper in shapers)
        self._report.corrupted = sum(shaper.corrupted for shaper in shapers)
        self._report.reordered = sum(shaper.reordered for shaper in shapers)
        return self._report

    def _take(self, device: int) -> None:
        """Take what a host has sent."""
        fates_of, to = self._out[device].fates, self._to
        for _ in range(_BATCH):
            try:
                packet = os.read(device, _LONGEST_PACKET)
            except OSError:  # nothing more, or its interface is down
                return
            now = time.monotonic()
            # Version 4 and its destination (RFC 791, section 3.1). Whatever else there is, such as
            # a kernel's looking for IPv6 routers, is nobody's, and must not use up chance.
            is_ipv4 = len(packet) >= _IPV4_HEADER_BYTES and packet[0] >> 4 == 4
            receiver = to.get(packet[16:20]) if is_ipv4 else None
            if receiver is None:
                self._report.refused += 1
                continue
            for due, flip in fates_of(now, len(packet)):
                copy = packet if flip is None else flip_bit(packet, flip)
                self._hold(due, receiver, copy, is_limited=receiver in self._in)

    def _hold(self, due: float, receiver: int, packet: bytes, *, is_limited: bool) -> None:
        if self._held_bytes > _MOST_HELD_BYTES:
            self._report.held_full += 1
            return
        self._number += 1  # packets that are due at the same time keep their order
        self._held_bytes += len(packet)
        heapq.heappush(self._held, (due, self._number, receiver, is_limited, packet))

    def _give(self) -> None:
        """Give what is due, and set the timer for what is due next."""
        held, report = self._held, self._report
        now = time.monotonic()
        while held and held[0][0] <= now + _AT_ONCE_SECONDS:
            due, _, receiver, is_limited, packet = heapq.heappop(held)
            self._held_bytes -= len(packet)
            if is_limited:
                # Reckoned from when it was due, not from now: our own lateness must not add up.
                for taken, flip in self._in[receiver].fates(due, len(packet)):
                    copy = packet if flip is None else flip_bit(packet, flip)
                    self._hold(taken, receiver, copy, is_limited=False)
                continue
            try:
                os.write(receiver, packet)
            except OSError:  # its interface is down, or it is out of memory: a packet is lost
                report.refused += 1
                continue
            report.forwarded += 1
            report.late_seconds_most = max(report.late_seconds_most, now - due)
            now = time.monotonic()
        self._timer.set(held[0][0] if held else None)


class _Timer:
    """A timer that wakes epoll to the microsecond; epoll's own timeout counts milliseconds."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        if self.descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._value = (ctypes.c_long * 4)()  # struct itimerspec: no interval, then the time
        self._set_for: float | None = None

    def set(self, due: float | None) -> None:
        """Wake at a time of `time.monotonic`; None for never."""
        if due == self._set_for:
            return
        self._set_for = due
        seconds = 0.0 if due is None else max(due, 1e-9)
        self._value[2] = int(seconds)
        self._value[3] = int((seconds - int(seconds)) * 1e9)
        self._libc.timerfd_settime(self.descriptor, _TIMER_ABSTIME, self._value, None)

    def quiet(self) -> None:
        """Take note that it has woken us."""
        self._set_for = None
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 8)

    def close(self) -> None:
        """Free its file."""
        os.close(self.descriptor)
