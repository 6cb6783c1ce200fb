"""A load that hardly costs anything: it asks for ranges as wrk does, but has the kernel drop them.

wrk copies every byte, 8 KiB at a time: its core is full before nginx's is, by far from 256 KiB on,
and a comparison would be one of wrk with itself. Here the body is discarded in the kernel
(MSG_TRUNC, tcp(7)), as if the viewers were other machines.

Runs as a program: prints what wrk's script prints.
"""

import itertools
import json
import select
import socket
import sys
import time
from typing import Final
from urllib.parse import urlsplit

import numpy as np

_REQUESTS: Final = 8192
_HEAD_BYTES: Final = 4096
_NOWHERE: Final = bytearray(8 << 20)  # its size alone counts: nothing is written to it
_ALIGNED: Final = 16 * 1024
_POLL_SECONDS: Final = 0.5


class _Connection:
    """One kept-alive connection with one request under way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = 0  # bytes of the body; 0 while the header is awaited
        self.head = b""
        self.begun = 0.0
        self.is_last = False  # the server will close after this answer

    def ask(self, request: bytes, now: float) -> None:
        self.begun, self.head = now, b""
        self.socket.sendall(request)

    def read(self, size: int) -> tuple[int, bool]:
        """Take what is there; how many bytes, and whether the answer is whole.

        Raises:
            ValueError: it is not the range.
            OSError: the connection broke.
        """
        taken = 0
        if not self.left:
            data = self.socket.recv(_HEAD_BYTES)
            taken = len(data)
            self.head += data
            head, end, body = self.head.partition(b"\r\n\r\n")
            if not data or len(self.head) > 4 * _HEAD_BYTES:
                raise ValueError
            if not end:
                return taken, False
            fields = head.lower()
            if b" 206 " not in fields[:16] or b"content-length: %d" % size not in fields:
                raise ValueError
            self.left = size - len(body)
            self.is_last = b"\r\nconnection: close" in fields
        if self.left:
            try:
                got = self.socket.recv_into(
                    _NOWHERE, min(self.left, len(_NOWHERE)), socket.MSG_TRUNC | socket.MSG_DONTWAIT
                )
            except BlockingIOError:
                return taken, False
            if not got:
                raise ValueError
            self.left -= got
            taken += got
        return taken, not self.left


class _Load:
    """All connections, and what came over them."""

    def __init__(self, address: tuple[str, int], requests: list[bytes], size: int) -> None:
        self.latencies: list[float] = []
        self.received = self.errors = 0
        self._address = address
        self._requests = itertools.cycle(requests)
        self._size = size
        self._poll = select.epoll()
        self._open: dict[int, _Connection] = {}

    def connect(self) -> None:
        one = _Connection(self._address)
        number = one.socket.fileno()
        self._open[number] = one
        self._poll.register(number, select.EPOLLIN)
        one.ask(next(self._requests), time.perf_counter())

    def run(self, seconds: float) -> float:
        """Ask and read for so long, or until no connection is left; seconds that it took."""
        begun = now = time.perf_counter()
        while now < begun + seconds and self._open:
            for number, _ in self._poll.poll(_POLL_SECONDS):
                try:
                    self._read(number)
                except (OSError, ValueError):
                    self.errors += 1
                    if number in self._open:
                        self._close(number)
            now = time.perf_counter()
        return now - begun

    def close(self) -> None:
        for number in list(self._open):
            self._close(number)
        self._poll.close()

    def _read(self, number: int) -> None:
        one = self._open[number]
        taken, whole = one.read(self._size)
        self.received += taken
        if not whole:
            return
        now = time.perf_counter()
        self.latencies.append(now - one.begun)
        if one.is_last:  # nginx closes after 1,000 requests, unless told otherwise
            self._close(number)
            self.connect()
        else:
            one.ask(next(self._requests), now)

    def _close(self, number: int) -> None:
        self._poll.unregister(number)
        self._open.pop(number).socket.close()


def run(
    url: str, *, size: int, film_bytes: int, connections: int, seconds: float, seed: int
) -> dict[str, float]:
    """Load a server for so many seconds; what wrk's script prints, in seconds and bytes."""
    parts = urlsplit(url)
    places = np.random.default_rng(seed).integers(0, (film_bytes - size) // _ALIGNED + 1, _REQUESTS)
    requests = [
        (
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Range: bytes={start}-{start + size - 1}\r\n\r\n"
        ).encode()
        for start in (places * _ALIGNED).tolist()
    ]
    load = _Load((str(parts.hostname), int(parts.port or 80)), requests, size)
    try:
        for _ in range(connections):
            load.connect()
        took = load.run(seconds)
    finally:
        load.close()
    p50, p99 = np.percentile(load.latencies or [float(seconds)], (50, 99)).tolist()
    none = {"connect": 0, "write": 0, "status": 0, "timeout": 0}
    measured = {"requests": len(load.latencies), "bytes": load.received, "seconds": took}
    return {**measured, "p50": p50, "p99": p99, "read": load.errors, **none}


def main() -> None:
    """Read the arguments in the order in which `measure` gives them."""
    url, size, film_bytes, connections, seconds, seed = sys.argv[1:]
    summary = run(
        url,
        size=int(size),
        film_bytes=int(film_bytes),
        connections=int(connections),
        seconds=float(seconds),
        seed=int(seed),
    )
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
