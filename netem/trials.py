"""What runs in the hosts when a network is measured: `python -m netem.trials KIND ...`.

- `ping ADDRESS COUNT INTERVAL_SECONDS`: ICMP echoes, answered by the kernel over there and
  stamped as they arrive by the kernel here, so that no program's waking up is in the figures.
- `sink`: prints the port that it listens at, then, when nothing has come for a while, what did.
- `send ADDRESS PORT COUNT RATE SIZE`: numbered datagrams of that many bytes of IP, evenly, at a
  rate.
- `load ADDRESS RATE SIZE`: the same without end, to nobody in particular.
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

from netem.model import count
from netem.spec import MTU_BYTES

__all__ = ["ping", "send", "sink"]

_ECHO: Final = 8  # RFC 792
_HEADERS_BYTES: Final = 28  # of IP and UDP
_SO_TIMESTAMPNS: Final = 35  # <asm-generic/socket.h>: the socket module has no name for these
_SO_NO_CHECK: Final = 11
_NUMBERS: Final = struct.Struct("!II")
_LOAD_PORT: Final = 9  # discard, RFC 863
_FIRST_SECONDS: Final = 60.0
_QUIET_SECONDS: Final = 1.5
_LONGEST_PAUSE_SECONDS: Final = 0.1


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


def sink(sent: int) -> dict[str, Any]:
    """Take numbered datagrams until nothing more comes.

    Args:
        sent: how many there will be.

    Returns:
        `arrived`, `duplicates`, `reordered`, `corrupted` as `netem.model.Arrivals` has them; and
        `rate`: bytes of IP per second from the first to the last, None of fewer than two.
    """
    size = corrupted = 0
    numbers: list[int] = []
    first = last = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taking:
        taking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        taking.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        taking.bind(("", 0))
        _say({"port": taking.getsockname()[1]})
        taking.settimeout(_FIRST_SECONDS)
        with contextlib.suppress(TimeoutError):
            while True:
                data, extras, _, _ = taking.recvmsg(MTU_BYTES, 128)
                taking.settimeout(_QUIET_SECONDS)
                seconds, nanoseconds = struct.unpack("@ll", extras[0][2])
                last = seconds * 1_000_000_000 + nanoseconds
                first = first or last
                size += len(data) + _HEADERS_BYTES
                number, again = _NUMBERS.unpack_from(data)
                corrupted += number != again or any(data[_NUMBERS.size :])
                # One of the two is as it was sent: one bit was flipped.
                numbers.append(number if number < sent else again)
    seen = count(sent, numbers, corrupted)
    # The first packet's time is its end: the time it took itself is not in the span.
    spanned = (last - first) / 1e9
    rate = size * (len(numbers) - 1) / len(numbers) / spanned if spanned > 0 else None
    return {
        "arrived": seen.arrived,
        "duplicates": seen.duplicates,
        "reordered": seen.reordered,
        "corrupted": seen.corrupted,
        "rate": rate,
    }


def send(address: str, port: int, packets: int, rate: float, size: int) -> dict[str, Any]:
    """Send numbered datagrams evenly.

    They carry no checksum, so that one with a flipped bit arrives.

    Args:
        address: to whom.
        port: where.
        packets: how many; 0 for no end.
        rate: bytes of IP per second.
        size: bytes of IP of each.

    Returns:
        `packets`, and `seconds` that it took.
    """
    filling = bytes(size - _HEADERS_BYTES - _NUMBERS.size)
    interval = size / rate
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as giving:
        giving.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
        giving.connect((address, port))
        began = next_at = time.monotonic()
        number = 0
        while not packets or number < packets:
            now = time.monotonic()
            if now < next_at:
                time.sleep(next_at - now)
            elif now > next_at + _LONGEST_PAUSE_SECONDS:
                next_at = now  # the machine stood still: what was not sent is not made up for
            with contextlib.suppress(ConnectionRefusedError, BlockingIOError):
                giving.send(_NUMBERS.pack(number, number) + filling)
            number += 1
            next_at += interval
    return {"packets": number, "seconds": time.monotonic() - began}


def load(address: str, rate: float, size: int) -> None:
    """Send without end; takes what comes from others and looks at none of it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taking:
        taking.bind(("", _LOAD_PORT))
        _say({"event": "loading"})
        send(address, _LOAD_PORT, 0, rate, size)


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main(words: Sequence[str]) -> None:
    """Run one of them."""
    kind, *rest = words
    if kind == "ping":
        _say(ping(rest[0], int(rest[1]), float(rest[2])))
    elif kind == "sink":
        _say(sink(int(rest[0])))
    elif kind == "load":
        load(rest[0], float(rest[1]), int(rest[2]))
    else:
        _say(send(rest[0], int(rest[1]), int(rest[2]), float(rest[3]), int(rest[4])))


if __name__ == "__main__":
    main(sys.argv[1:])
