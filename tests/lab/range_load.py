"""Clients that read ranges for some seconds; prints what they read as a line of JSON.

Arguments: host, port, title, bytes of the film, bytes of a range, clients, seconds, seconds of
rest after each answer. The kernel throws bodies away (MSG_TRUNC), so that the server is the limit;
a client's first answer is compared with the film, if its path is given as well.
"""

import json
import random
import socket
import sys
import threading
import time


def header_of(sock, buffer):
    """Read an answer's header; how much of the body came with it, and what is to come."""
    have = 0
    while True:
        have += sock.recv_into(memoryview(buffer)[have:])
        head, found, body = bytes(buffer[:have]).partition(b"\r\n\r\n")
        if found:
            lines = head.lower().split(b"\r\n")
            assert lines[0].startswith(b"http/1.1 206"), lines[0]
            length = next(int(line[16:]) for line in lines if line.startswith(b"content-length: "))
            return body, length - len(body)


def read(arguments, film, result):
    host, port, title, size, length, _, seconds, rest = arguments
    rng = random.Random(threading.get_ident())
    buffer = bytearray(256 * 1024)
    answered = wrong = total = 0
    slowest = 0.0
    with socket.create_connection((host, int(port))) as sock:
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until:
            at = rng.randrange(max(int(size) - int(length), 1))
            last = min(at + int(length), int(size)) - 1
            began = time.monotonic()
            sock.sendall(
                f"GET /titles/{title}/content HTTP/1.1\r\nHost: {host}\r\n"
                f"Range: bytes={at}-{last}\r\n\r\n".encode()
            )
            body, left = header_of(sock, buffer)
            if film is not None and not answered:
                whole = bytearray(body)
                while left:
                    part = sock.recv(left)
                    whole += part
                    left -= len(part)
                wrong += whole != film[at : last + 1]
            while left:
                got = sock.recv_into(buffer, min(left, len(buffer)), socket.MSG_TRUNC)
                if not got:
                    raise ConnectionError("cut")
                left -= got
            answered += 1
            total += last + 1 - at
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(float(rest))
    result.append((answered, total, wrong, slowest))


def main(arguments, path):
    film = None
    if path:
        with open(path[0], "rb") as file:  # noqa: PTH123 - nothing but this needs pathlib
            film = file.read()
    result = []
    threads = [
        threading.Thread(target=read, args=(arguments, film, result))
        for _ in range(int(arguments[5]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(
        json.dumps(
            {
                "answers": sum(each[0] for each in result),
                "bytes": sum(each[1] for each in result),
                "wrong": sum(each[2] for each in result),
                "slowest": max((each[3] for each in result), default=0.0),
                "failed": int(arguments[5]) - len(result),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:9], sys.argv[9:])
