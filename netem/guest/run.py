"""One command in a guest of its own, with our standard streams, to its end."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from netem.guest.frames import Frame, Kind
from netem.guest.guest import Guest, Program

__all__ = ["run_in_guest"]


def run_in_guest(command: Sequence[str], memory_bytes: int) -> int:
    """Boot a guest, run a command in it, end the guest.

    Args:
        command: it, with its arguments.
        memory_bytes: how much the guest has.

    Returns:
        The command's exit code; 128 and its number if a signal ended it.

    Raises:
        NetemError: there is no guest here, or it ended before the command.
    """
    return asyncio.run(_run(command, memory_bytes))


async def _run(command: Sequence[str], memory_bytes: int) -> int:
    loop = asyncio.get_running_loop()
    async with Guest(memory_bytes) as guest:
        program = await guest.start(command, _pass_on)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, program.signal, number)
        if not sys.stdin.isatty():
            _pass_input(program)
        try:
            code = await program.wait()
        finally:
            loop.remove_reader(0)
    return code if code >= 0 else 128 - code


def _pass_on(frame: Frame) -> None:
    if frame.kind is Kind.EXIT:
        return
    descriptor = 2 if frame.kind is Kind.ERRORS else 1
    rest = memoryview(frame.data)
    with contextlib.suppress(BrokenPipeError):
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _pass_input(program: Program) -> None:
    """What comes on our standard input is the program's; a terminal's is not: it has none there."""
    loop = asyncio.get_running_loop()

    def take() -> None:
        data = os.read(0, 1 << 16)
        program.write(data)
        if not data:
            loop.remove_reader(0)

    try:
        loop.add_reader(0, take)
    except PermissionError:  # a regular file: always ready
        with open(0, "rb", closefd=False) as stream:
            program.write(stream.read())
            program.write(b"")
