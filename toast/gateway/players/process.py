"""A player's process: started apart from our terminal, ended with us, its last words kept."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from toast.gateway.players.errors import PlayerError

__all__ = ["Process", "run_process"]

_GRACE_SECONDS: Final = 2.0
_LINES_KEPT: Final = 4
_LINE_BYTES: Final = 200


class Process:
    """One that runs. Made by `run_process`.

    Attributes:
        name: what errors call it.
    """

    def __init__(self, name: str, native: asyncio.subprocess.Process) -> None:
        self.name = name
        self._native = native
        self._words: deque[str] = deque(maxlen=_LINES_KEPT)
        self._listening = asyncio.create_task(self._listen())

    async def wait(self) -> int:
        """Wait for its end.

        Returns:
            Its exit code.

        Raises:
            PlayerError: a signal ended it.
        """
        code = await self._native.wait()
        await self._listening
        if code < 0:
            raise PlayerError(f"{self.name} died: {signal.strsignal(-code) or f'signal {-code}'}")
        return code

    @property
    def last_words(self) -> str:
        """The last lines that it wrote, as one; empty if there were none."""
        return " / ".join(self._words)

    async def end(self) -> None:
        """End it, and whatever it has started; does nothing if it has ended."""
        if self._native.returncode is None:
            self._signal(signal.SIGTERM)
            # Not asyncio.timeout: before Python 3.11.4 it does not time out in a cancelled task.
            ended = asyncio.ensure_future(self._native.wait())
            await asyncio.wait({ended}, timeout=_GRACE_SECONDS)
            ended.cancel()
            if self._native.returncode is None:
                self._signal(signal.SIGKILL)
                await self._native.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._native.pid, number)

    async def _listen(self) -> None:
        """Read all that it writes, so that it never waits for us; keep the last of it."""
        assert self._native.stdout is not None
        rest = b""
        while chunk := await self._native.stdout.read(4096):
            # Players write progress over itself with carriage returns.
            *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                self._keep(line)
            rest = rest[:_LINE_BYTES]
        self._keep(rest)

    def _keep(self, line: bytes) -> None:
        text = "".join(c for c in line[:_LINE_BYTES].decode(errors="replace") if c.isprintable())
        if text.strip():
            self._words.append(text.strip())


@asynccontextmanager
async def run_process(
    name: str, words: Sequence[str], *, pass_fds: Sequence[int] = ()
) -> AsyncIterator[Process]:
    """Start a program and end it when the block ends.

    It has no terminal and hears no Ctrl-C: that is for us to hear.

    Raises:
        PlayerError: it cannot be started.
    """
    try:
        native = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PlayerError(f"{name} cannot be started ({words[0]}: {reason.lower()})") from error
    process = Process(name, native)
    try:
        yield process
    finally:
        await process.end()
