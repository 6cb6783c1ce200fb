"""Announces over UDP as fast as a tracker answers them: a closed loop on a few sockets.

Datagrams leave and come in batches (`sendmmsg`, `recvmmsg`), and are made of an array of requests
whose changing fields are filled in for a whole batch at once: so this costs far less for each
announce than our tracker. It runs as a program of its own: `udp_load.py PORT PROCESS SECONDS
SWARMS PEERS NUMWANT` says as JSON what came back, and how much CPU time the tracker's process has
had. With no seconds it has each member announce itself once.
"""

import ctypes
import json
import select
import socket
import struct
import sys
import time
from pathlib import Path

import numpy as np

BATCH = 64
SOCKETS = 4
REQUEST_BYTES = 98
ANSWER_BYTES = 1500
FIRST_PORT = 10_000
MSG_DONTWAIT = 0x40
LIBC = ctypes.CDLL(None, use_errno=True)


class Vector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.c_void_p),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_long),  # an int, and what aligns the whole
        ("received", ctypes.c_uint),
    )


class Batch:
    """Room for a batch of datagrams, as the kernel wants it described."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros((BATCH, size), np.uint8)
        self.vectors = (Vector * BATCH)()
        self.messages = (Message * BATCH)()
        for number in range(BATCH):
            self.vectors[number].base = self.data[number].ctypes.data
            self.vectors[number].length = size
            self.messages[number].vectors = ctypes.addressof(self.vectors[number])
            self.messages[number].vector_count = 1
        received = np.frombuffer(self.messages, np.uint8).reshape(BATCH, -1)
        offset = Message.received.offset
        self.received = received[:, offset : offset + 4].view(np.uint32)[:, 0]


class Connection:
    """One socket with a connection id, and a batch under way."""

    def __init__(self, port: int) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.connect(("127.0.0.1", port))
        self.sock.settimeout(10.0)
        self.sock.send(struct.pack(">QII", 0x41727101980, 0, 1))
        _, _, self.connection_id = struct.unpack(">IIQ", self.sock.recv(2048))
        self.sock.setblocking(False)
        self.out, self.back = Batch(REQUEST_BYTES), Batch(ANSWER_BYTES)
        self.awaited = 0
        self.sent_at = 0.0
        head = struct.pack(">QII", self.connection_id, 1, 7)
        tail = struct.pack(">QQQIIIiH", 0, 1000, 0, 0, 0, 0, 50, 0)
        self.out.data[:] = np.frombuffer(head + bytes(40) + tail, np.uint8)


class Load:
    """The announces, and what is known of the answers."""

    def __init__(self, swarms: int, peers: int, numwant: int) -> None:
        self.swarms, self.peers, self.numwant = swarms, peers, numwant
        self.rng = np.random.default_rng(1)
        self.answers = self.bytes = self.lost = self.refused = 0
        self.poll = select.poll()

    def fill(self, connection: Connection, members: np.ndarray) -> None:
        """Requests of these members: the swarm is in the hash, the peer in its id and port."""
        data, swarm, peer = connection.out.data, members % self.swarms, members // self.swarms
        data[:, 16:36] = 0
        data[:, 16:20] = swarm.astype(">u4").view(np.uint8).reshape(-1, 4)
        data[:, 36:56] = ord("-")
        data[:, 36:40] = peer.astype(">u4").view(np.uint8).reshape(-1, 4)
        data[:, 92:96] = np.frombuffer(struct.pack(">i", self.numwant), np.uint8)
        data[:, 96:98] = (FIRST_PORT + peer).astype(">u2").view(np.uint8).reshape(-1, 2)

    def step(self, connection: Connection, members: np.ndarray) -> None:
        """Send a batch if none is under way, and take in what has come back."""
        number = connection.sock.fileno()
        if not connection.awaited:
            self.fill(connection, members)
            sent = LIBC.sendmmsg(number, connection.out.messages, BATCH, 0)
            connection.awaited = max(0, sent)
            connection.sent_at = time.monotonic()
            return
        came = LIBC.recvmmsg(number, connection.back.messages, BATCH, MSG_DONTWAIT, None)
        if came > 0:
            connection.awaited = max(0, connection.awaited - came)
            self.answers += came
            self.bytes += int(connection.back.received[:came].sum())
            self.refused += int((connection.back.data[:came, 3] != 1).sum())
        elif time.monotonic() - connection.sent_at > 1.0:
            self.lost += connection.awaited
            connection.awaited = 0

    def run(self, connections: list[Connection], seconds: float, *, all_once: bool) -> float:
        """Ask for so long, or until each member has announced itself; returns the seconds."""
        total = self.swarms * self.peers
        for connection in connections:
            self.poll.register(connection.sock, select.POLLIN)
        started = time.monotonic()
        asked = 0
        while (asked < total) if all_once else (time.monotonic() - started < seconds):
            for connection in connections:
                if all_once and not connection.awaited:
                    members = np.arange(asked, asked + BATCH) % total
                    asked += BATCH
                else:
                    members = self.rng.integers(0, total, BATCH)
                self.step(connection, members)
            if all(connection.awaited for connection in connections):
                self.poll.poll(100)
        while any(connection.awaited for connection in connections):
            for connection in connections:
                if connection.awaited:
                    self.step(connection, self.rng.integers(0, total, BATCH))
        return time.monotonic() - started


def cpu_seconds(process: int) -> float:
    """CPU time that a process has had, all threads together."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def main() -> None:
    """Fill the tracker, or measure."""
    port, process = int(sys.argv[1]), int(sys.argv[2])
    seconds, swarms, peers, numwant = float(sys.argv[3]), *map(int, sys.argv[4:7])
    load = Load(swarms, peers, numwant)
    connections = [Connection(port) for _ in range(SOCKETS)]
    before, own = cpu_seconds(process), time.process_time()
    took = load.run(connections, seconds, all_once=not seconds)
    figures = {
        "answers": load.answers,
        "seconds": took,
        "server_cpu_seconds": cpu_seconds(process) - before,
        "load_cpu_seconds": time.process_time() - own,
        "lost": load.lost,
        "refused": load.refused,
        "peers_per_answer": (load.bytes / max(1, load.answers) - 20) / 6,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
