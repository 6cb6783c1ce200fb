"""The first program of a guest: mounts, loads modules, then starts what it is told to.

It does by itself what an init would, because a minimal machine has no `insmod`, and `modprobe`
would look for the modules of another kernel. When the line ends, so does the guest. It is started
by its file's name, for a guest inherits no environment, and needs nothing but Python.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import tty
from pathlib import Path
from typing import Final, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from netem.guest.frames import Decoder, Frame, Kind, encode

__all__ = ["Agent", "main"]

_POWER_OFF: Final = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, <linux/reboot.h>
_LINE: Final = "/dev/ttyS0"
_READ_BYTES: Final = 1 << 15
_MOUNTS: Final = (
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("tmpfs", "/run"),
    ("tmpfs", "/dev/shm"),  # noqa: S108  (the guest's own)
)


class _Program:
    """One program of the guest."""

    def __init__(self, channel: int, process: subprocess.Popen[bytes]) -> None:
        self.channel = channel
        self.process = process
        self.input = bytearray()
        self.input_ends = False
        self.code: int | None = None


class Agent:
    """Starts programs as the line says.

    Args:
        line: open file of it, both ways.
    """

    def __init__(self, line: int) -> None:
        self._line = line
        self._decoder = Decoder()
        self._starting: dict[int, bytes] = {}
        self._programs: dict[int, _Program] = {}
        self._select = selectors.DefaultSelector()
        self._wake, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve until the line ends or says so."""
        self._select.register(self._line, selectors.EVENT_READ)
        self._select.register(self._wake, selectors.EVENT_READ)
        self._send(0, Kind.READY)
        while True:
            for key, _ in self._select.select():
                if self._select.get_map().get(key.fd) is not key:
                    continue  # its program ended while we looked at the others
                if key.fd == self._line:
                    data = os.read(self._line, _READ_BYTES)
                    if not data:
                        return
                    self._send(0, Kind.TAKEN, str(len(data)).encode())
                    for frame in self._decoder.feed(data):
                        if frame.kind is Kind.POWER_OFF:
                            return
                        self._take(frame)
                elif key.fd == self._wake:
                    os.read(self._wake, _READ_BYTES)
                    self._reap()
                elif isinstance(key.data, _Program):
                    self._feed(key.data)
                else:
                    self._give(key.fd, *key.data)

    def _take(self, frame: Frame) -> None:
        channel = frame.channel
        if frame.kind in {Kind.START, Kind.BEGIN}:
            self._starting[channel] = self._starting.get(channel, b"") + frame.data
            if frame.kind is Kind.BEGIN:
                self._start(channel, self._starting.pop(channel))
            return
        program = self._programs.get(channel)
        if program is None:  # it has just ended
            return
        if frame.kind is Kind.INPUT:
            program.input += frame.data
            program.input_ends |= not frame.data
            self._feed(program)
        elif frame.kind is Kind.SIGNAL:
            with contextlib.suppress(OSError):
                os.killpg(program.process.pid, int(frame.data))

    def _feed(self, program: _Program) -> None:
        """Give a program of its input what it takes; the rest when it takes more.

        To wait for it here could be for ever: it may itself be waiting for us to take its output.
        """
        pipe = program.process.stdin
        assert pipe is not None
        if pipe.closed:
            return
        with contextlib.suppress(KeyError):
            self._select.unregister(pipe.fileno())
        try:
            while program.input:
                del program.input[: os.write(pipe.fileno(), program.input)]
        except BlockingIOError:
            self._select.register(pipe.fileno(), selectors.EVENT_WRITE, program)
            return
        except OSError:  # it has closed it
            program.input.clear()
            program.input_ends = True
        if program.input_ends:
            pipe.close()

    def _start(self, channel: int, message: bytes) -> None:
        what = json.loads(message)
        try:
            process = subprocess.Popen(  # noqa: S603  (whoever holds the line may run anything)
                what["argv"],
                cwd=what["cwd"],
                env=what["env"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            words = f"{what['argv'][0]} cannot be started: {error.strerror}\n"
            self._send(channel, Kind.ERRORS, words.encode())
            self._send(channel, Kind.EXIT, b"127")
            return
        program = self._programs[channel] = _Program(channel, process)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        os.set_blocking(process.stdin.fileno(), False)
        for stream, kind in ((process.stdout, Kind.OUTPUT), (process.stderr, Kind.ERRORS)):
            self._select.register(stream.fileno(), selectors.EVENT_READ, (program, stream, kind))

    def _give(self, descriptor: int, program: _Program, stream: object, kind: Kind) -> None:
        data = os.read(descriptor, _READ_BYTES)
        if data:
            self._send(program.channel, kind, data)
            return
        self._select.unregister(descriptor)
        stream.close()  # type: ignore[attr-defined]  # a pipe of Popen's
        self._perhaps_ended(program)

    def _reap(self) -> None:
        """Take note of whoever has ended: ours, and orphans that became the first program's."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                for program in list(self._programs.values()):
                    if program.process.pid == pid:
                        program.code = os.waitstatus_to_exitcode(status)
                        program.process.returncode = program.code  # so that Popen asks no more
                        self._perhaps_ended(program)

    def _perhaps_ended(self, program: _Program) -> None:
        # Orphans may hold its output open for longer than it lives; whoever waits for it does not.
        if program.code is None or program.channel not in self._programs:
            return
        for key in list(self._select.get_map().values()):
            if isinstance(key.data, tuple) and key.data[0] is program:
                os.set_blocking(key.fd, False)
                with contextlib.suppress(BlockingIOError):
                    while data := os.read(key.fd, _READ_BYTES):
                        self._send(program.channel, key.data[2], data)
                self._select.unregister(key.fd)
                key.data[1].close()
        program.input_ends = True
        program.input.clear()
        self._feed(program)
        del self._programs[program.channel]
        self._send(program.channel, Kind.EXIT, str(program.code).encode())

    def _send(self, channel: int, kind: Kind, data: bytes = b"") -> None:
        rest = memoryview(encode(channel, kind, data))
        while rest:
            rest = rest[os.write(self._line, rest) :]


def main(modules: list[str]) -> NoReturn:
    """Prepare the guest, serve, and power it off."""
    libc = ctypes.CDLL(None, use_errno=True)
    line = os.open(_LINE, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    tty.setraw(line)
    try:
        for kind, place in _MOUNTS:
            Path(place).mkdir(exist_ok=True)
            words = [kind.encode(), place.encode(), kind.encode()]
            _check(libc.mount(*words, ctypes.c_ulong(0), None), place)
        for module in modules:
            image = Path(module).read_bytes()
            _check(libc.init_module(image, ctypes.c_ulong(len(image)), b""), module)
        Agent(line).run()
    except OSError as error:
        os.write(line, encode(0, Kind.READY, str(error).encode()))
    finally:
        libc.reboot(_POWER_OFF)
    raise SystemExit(1)


def _check(code: int, what: str) -> None:
    if code:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    # User-mode Linux adds boot parameters of its own behind ours.
    main(sys.argv[1 : sys.argv.index("end")])
