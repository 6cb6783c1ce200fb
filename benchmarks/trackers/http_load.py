"""Announces over HTTP on connections that stay open.

`http_load.py PORT PROCESS SECONDS SWARMS PEERS` says as JSON what came back. It is a closed
loop: each connection has one request under way. With no seconds it has each member announce itself
once.
"""

import json
import select
import socket
import sys
import time
from urllib.parse import quote_from_bytes

import numpy as np
from udp_load import FIRST_PORT, cpu_seconds

CONNECTIONS = 32


def request(swarm: int, peer: int) -> bytes:
    """An announce as aria2 and others send it."""
    info_hash = quote_from_bytes(swarm.to_bytes(4, "big") + bytes(16), safe="")
    peer_id = quote_from_bytes(b"-TO0100-%012d" % peer, safe="")
    return (
        f"GET /announce?info_hash={info_hash}&peer_id={peer_id}&port={FIRST_PORT + peer}"
        "&uploaded=0&downloaded=0&left=1000&compact=1&numwant=50 HTTP/1.1\r\n"
        "Host: 127.0.0.1\r\nUser-Agent: load\r\nAccept-Encoding: gzip\r\n\r\n"
    ).encode()


def main() -> None:
    """Fill the tracker, or measure."""
    port, process, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    swarms, peers = int(sys.argv[4]), int(sys.argv[5])
    requests = [request(swarm, peer) for peer in range(peers) for swarm in range(swarms)]
    order = np.random.default_rng(1).permutation(len(requests)).tolist()
    poll, connections = select.epoll(), {}
    for _ in range(CONNECTIONS):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections[sock.fileno()] = sock
        poll.register(sock, select.EPOLLIN)
        sock.send(requests[order.pop()])
    answers = wrong = 0
    started, before, own = time.monotonic(), cpu_seconds(process), time.process_time()
    while time.monotonic() - started < seconds if seconds else answers < len(requests):
        for number, _ in poll.poll():
            answer = connections[number].recv(65536)
            answers += 1
            wrong += not answer.endswith(b"e") or b"8:complete" not in answer
            if not order:
                order = np.random.default_rng(answers).permutation(len(requests)).tolist()
            connections[number].send(requests[order.pop()])
    figures = {
        "answers": answers,
        "seconds": time.monotonic() - started,
        "server_cpu_seconds": cpu_seconds(process) - before,
        "load_cpu_seconds": time.process_time() - own,
        "lost": 0,
        "refused": wrong,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
