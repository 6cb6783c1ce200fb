"""What runs in the hosts when a network is measured: `python -m netem.trials KIND ...`.

- `ping ADDRESS COUNT INTERVAL_SECONDS`: ICMP echoes, answered by the kernel over there and
  stamped as they arrive by the kernel here, so that no program's waking up is in the figures.
- `sink SECONDS`: prints the port that it listens at, then what arrived there.
- `flood ADDRESS PORT RATE SECONDS`: datagrams at a rate.
"""

import contextlib
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from netem.spec import MTU_BYTES

__all__ = ["flood", "ping", "sink"]

_ECHO: Final = 8  # RFC 792
_HEADERS_BYTES: Final = 28  # of IP and UDP
_SO_TIMESTAMPNS: Final = 35  # <asm-generic/socket.h>: the socket module has no name for it


def ping(
    address: str, count: int, interval_seconds: float, wait_seconds: float = 2.0
) -> dict[str, Any]:
    """Send echoes evenly, and time the answers.

    Args:
        address: whom to ask.
        count: how many to send.
        interval_seconds: from one to the next.
        wait_seconds: for answers, after the last.

    Returns:
        `sent`, and `round_trips`: seconds of each that was answered, in the order of arrival.
    """
    own = os.getpid() & 0xFFFF
    sent: dict[int, int] = {}
    trips: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as echo:
        # The kernel chooses the identifier and fills in the checksum.
        echo.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        echo.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        echo.connect((address, 0))
        next_at = time.monotonic()
        for number in range(count):
            while (wait := next_at - time.monotonic()) > 0:
                _take_answer(echo, wait, sent, trips)
            header = struct.pack("!BBHHH", _ECHO, 0, 0, own, number)
            sent[number] = time.time_ns()
            with contextlib.suppress(BlockingIOError):
                echo.send(header)
            next_at += interval_seconds
        until = time.monotonic() + wait_seconds
        while len(trips) < count and (wait := until - time.monotonic()) > 0:
            _take_answer(echo, wait, sent, trips)
    return {"sent": count, "round_trips": trips}


def _take_answer(
    echo: socket.socket, wait: float, sent: dict[int, int], trips: list[float]
) -> None:
    echo.settimeout(max(wait, 1e-6))
    try:
        data, extras, _, _ = echo.recvmsg(2048, 128)
    except (TimeoutError, BlockingIOError):
        return
    number = struct.unpack_from("!H", data, 6)[0]
    for level, kind, value in extras:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and number in sent:
            seconds, nanoseconds = struct.unpack("@ll", value)
            trips.append((seconds * 1_000_000_000 + nanoseconds - sent.pop(number)) / 1e9)


def sink(seconds: float) -> dict[str, Any]:
    """Take datagrams for a while.

    Returns:
        `packets`; `rate`: bytes of IP per second from the first to the last, None of fewer than
        two.
    """
    packets = size = 0
    first = last = 0.0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taking:
        taking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        taking.bind(("", 0))
        _say({"port": taking.getsockname()[1]})
        until = time.monotonic() + seconds
        while (wait := until - time.monotonic()) > 0:
            taking.settimeout(wait)
            try:
                length = taking.recv_into(bytearray(MTU_BYTES)) + _HEADERS_BYTES
            except TimeoutError:
                break
            last = time.monotonic()
            first = first or last
            packets += 1
            size += length
    # The first packet's time is its end: the time it took itself is not in the span.
    spanned = last - first
    rate = size * (packets - 1) / packets / spanned if spanned > 0 else None
    return {"packets": packets, "rate": rate}


def flood(address: str, port: int, rate: float, seconds: float) -> dict[str, Any]:
    """Send full-sized datagrams at a rate (bytes of IP per second).

    Returns:
        `packets`: how many were sent.
    """
    data = bytes(MTU_BYTES - _HEADERS_BYTES)
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as giving:
        giving.connect((address, port))
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            while sent * MTU_BYTES < elapsed * rate:
                giving.send(data)
                sent += 1
            time.sleep(0.001)
    return {"packets": sent}


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main(words: Sequence[str]) -> None:
    """Run one of them."""
    kind, *rest = words
    if kind == "ping":
        _say(ping(rest[0], int(rest[1]), float(rest[2])))
    elif kind == "sink":
        _say(sink(float(rest[0])))
    else:
        _say(flood(rest[0], int(rest[1]), float(rest[2]), float(rest[3])))


if __name__ == "__main__":
    main(sys.argv[1:])
