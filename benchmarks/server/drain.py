"""A load that hardly costs anything: it asks for ranges as wrk does, but has the kernel drop them.

wrk copies every byte, 8 KiB at a time: its core is full before nginx's is, by far from 256 KiB on,
and a comparison would be one of wrk with itself. Here the body is discarded in the kernel
(MSG_TRUNC, tcp(7)), as if the viewers were other machines.

Runs as a program: prints what wrk's script prints.
"""

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


def run(
    url: str, *, size: int, film_bytes: int, connections: int, seconds: float, seed: int
) -> dict[str, float]:
    """Load a server for so many seconds; what wrk's script prints, in seconds and bytes."""
    parts = urlsplit(url)
    address = (str(parts.hostname), int(parts.port or 80))
    places = np.random.default_rng(seed).integers(0, (film_bytes - size) // _ALIGNED + 1, _REQUESTS)
    requests = [
        (
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Range: bytes={start}-{start + size - 1}\r\n\r\n"
        ).encode()
        for start in (places * _ALIGNED).tolist()
    ]
    poll = select.epoll()
    opened = [_Connection(address) for _ in range(connections)]
    by_number = {one.socket.fileno(): one for one in opened}
    latencies: list[float] = []
    asked = received = errors = 0
    begun = now = time.perf_counter()
    for number, one in by_number.items():
        poll.register(number, select.EPOLLIN)
        one.ask(requests[asked % _REQUESTS], now)
        asked += 1
    while now < begun + seconds and by_number:
        for number, _ in poll.poll(_POLL_SECONDS):
            one = by_number[number]
            try:
                taken, whole = one.read(size)
                received += taken
                if whole:
                    now = time.perf_counter()
                    latencies.append(now - one.begun)
                    one.ask(requests[asked % _REQUESTS], now)
                    asked += 1
            except (OSError, ValueError):
                errors += 1
                poll.unregister(number)
                by_number.pop(number).socket.close()
        now = time.perf_counter()
    for one in by_number.values():
        one.socket.close()
    p50, p99 = np.percentile(latencies or [float(seconds)], (50, 99)).tolist()
    none = {"connect": 0, "write": 0, "status": 0, "timeout": 0}
    measured = {"requests": len(latencies), "bytes": received, "seconds": now - begun}
    return {**measured, "p50": p50, "p99": p99, "read": errors, **none}


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
