"""The log's own process: it writes out lines that the tracker has put aside.

    python -m tracker.log_writer FILE

Its standard input is a stream of frames: a length (four bytes, big-endian), then by `marshal` the
lines, what must be added to their times, and how many there was no room for. It ends with its
standard input.
"""

import asyncio
import contextlib
import logging
import marshal
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO, Final

from toast.common.waiting import wait_event
from tracker.access_log import AccessLog, Line, format_lines

__all__ = ["keep_log", "main", "write_frames"]

_LOG: Final = logging.getLogger("tracker")
_EVERY_SECONDS: Final = 1.0
_AT_ONCE: Final = 20_000
"""Lines in a frame: putting them together stops answers for some milliseconds."""

_TAKE_SECONDS: Final = 5.0
_MOST_FRAME_BYTES: Final = 64 << 20


async def keep_log(log: AccessLog, file: Path, stop: asyncio.Event) -> None:
    """Have the log written once a second, by a process of its own, until told to stop."""
    writer: asyncio.subprocess.Process | None = None
    stopping = False
    try:
        while not stopping:
            stopping = await wait_event(stop, _EVERY_SECONDS)
            lines, dropped = log.take()
            if not lines and not dropped:
                continue
            if writer is None or writer.returncode is not None:
                writer = await _start(file)
            for at in range(0, max(len(lines), 1), _AT_ONCE):
                await _send(writer, (lines[at : at + _AT_ONCE], _since_epoch(), dropped))
                dropped = 0
    finally:
        if writer is not None:
            await _end(writer)


def _since_epoch() -> float:
    return time.time() - asyncio.get_running_loop().time()


async def _start(file: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tracker.log_writer", str(file)),
        stdin=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the tracker, which ends it
    )


async def _send(writer: asyncio.subprocess.Process, content: tuple[list[Line], float, int]) -> None:
    data = marshal.dumps(content)
    assert writer.stdin is not None
    try:
        writer.stdin.write(len(data).to_bytes(4, "big") + data)
        async with asyncio.timeout(_TAKE_SECONDS):
            await writer.stdin.drain()
    except (OSError, TimeoutError) as error:
        _LOG.warning("lines of the log are lost: %s", str(error) or "it is not written in time")


async def _end(writer: asyncio.subprocess.Process) -> None:
    if writer.stdin is not None:
        writer.stdin.close()
    try:
        async with asyncio.timeout(_TAKE_SECONDS):
            await writer.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            writer.kill()
        await writer.wait()


def write_frames(frames: BinaryIO, file: Path) -> None:
    """Append what comes to a file, which may be moved away at any time, until nothing comes."""
    names: dict[int, str] = {}
    told = False
    while len(head := frames.read(4)) == 4:
        size = int.from_bytes(head, "big")
        data = frames.read(min(size, _MOST_FRAME_BYTES))
        if len(data) < size:
            return
        lines, since_epoch, dropped = marshal.loads(data)  # noqa: S302 - of our own process alone
        text = format_lines(lines, since_epoch, names)
        if dropped:
            text += f"{time.time():.3f} {dropped} more there was no room for\n"
        try:
            with file.open("a") as written:
                written.write(text)
            told = False
        except OSError as error:
            if not told:
                _LOG.warning("the log %s cannot be written: %s", file, error.strerror)
            told = True


def main() -> None:
    """Write until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(format="toast-tracker: %(message)s", level=logging.WARNING)
    write_frames(sys.stdin.buffer, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
