"""Run a program in a guest: `python -m netem.guest.client SOCKET PREFIX_JSON PARENT COMMAND...`.

SOCKET is the name of the abstract socket at which the guest's keeper listens; PREFIX_JSON what
stands before the command in the guest, as a list; PARENT the process with which the program must
end, 0 for none. Standard streams, folder, environment, signals and exit code are the program's.
"""

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Final

from netem.enter import end_with_parent
from netem.guest.frames import Decoder, Kind, encode

__all__ = ["main"]

_READ_BYTES: Final = 1 << 16
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_BUFFER_BYTES: Final = 1 << 20


def _relay(keeper: socket.socket) -> int:
    """Until the program has ended; returns its exit code."""
    decoder = Decoder()
    sources = [keeper.fileno(), 0]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            data = os.read(0, _READ_BYTES)
            keeper.sendall(encode(0, Kind.INPUT, data))
            if not data:
                sources.remove(0)
        if keeper.fileno() in ready:
            data = keeper.recv(_BUFFER_BYTES)
            if not data:
                sys.stderr.write("netem.guest: the network is not up any more\n")
                return 127
            for frame in decoder.feed(data):
                if frame.kind is Kind.EXIT:
                    return int(frame.data)
                _write(2 if frame.kind is Kind.ERRORS else 1, frame.data)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def main(words: list[str]) -> int:
    """Run what the command line says."""
    name, prefix, parent, *command = words
    if int(parent):
        end_with_parent(int(parent))
    what = {
        "argv": [*json.loads(prefix), *command],
        "cwd": str(Path.cwd()),
        "env": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as keeper:
        try:
            keeper.connect(f"\0{name}")
        except OSError as error:
            sys.stderr.write(f"netem.guest: the network is not up any more: {error.strerror}\n")
            return 127
        keeper.sendall(encode(0, Kind.START, json.dumps(what).encode()) + encode(0, Kind.BEGIN))
        for number in _SIGNALS:
            signal.signal(
                number,
                lambda got, _: keeper.sendall(encode(0, Kind.SIGNAL, str(got).encode())),
            )
        try:
            code = _relay(keeper)
        except (BrokenPipeError, ConnectionResetError):
            return 127
    if code < 0:  # ended by a signal: so are we, for whoever waits for us
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
