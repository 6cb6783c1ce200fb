"""Real programs as parts of an experiment: started, listened to, and ended whatever happens.

Each program runs in a process group of its own, so that Ctrl-C on the terminal reaches the
experiment alone, which then ends the programs in order. Their standard output is read as one JSON
object per line; both outputs go to a log file.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from experiments.errors import ProcessError

__all__ = ["Child", "Event", "Processes", "program"]

Event = dict[str, Any]
"""One JSON object that a program printed; its `event` names its kind."""

_LONGEST_LINE_BYTES = 1024 * 1024
_LAST_LINES = 20
_GRACE_SECONDS = 5.0
_FRAME = " |+-\t"


def program(name: str) -> str:
    """The path of one of our console scripts, beside the Python that runs us.

    Raises:
        ProcessError: it is not installed there.
    """
    path = Path(sys.executable).parent / name
    if not path.is_file():
        raise ProcessError(f"the program {name} is not installed beside {sys.executable}")
    return str(path)


class Child:
    """One running program. Made by `Processes.start`."""

    def __init__(
        self,
        name: str,
        process: asyncio.subprocess.Process,
        log: BinaryIO,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self.name = name
        self._process = process
        self._log = log
        self._on_event = on_event
        self._events: dict[str, Event] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._complaints: deque[str] = deque(maxlen=_LAST_LINES)
        self._watch = asyncio.create_task(self._follow(), name=f"follow {name}")

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """Its last line on standard error that says something.

        What ends with several errors at once frames them with bars (PEP 654).
        """
        said = (line.strip(_FRAME) for line in reversed(self._complaints))
        return next((line for line in said if line), "it said nothing")

    def event(self, kind: str) -> Event | None:
        """The last event of a kind that it printed."""
        return self._events.get(kind)

    async def wait_event(self, kind: str, *, timeout_seconds: float) -> Event:
        """Wait until it has printed an event of a kind.

        Raises:
            ProcessError: it ended before, or did not do so in time.
        """
        said = self._said(kind)
        await asyncio.wait(
            {said, self._watch}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if said.done():
            return self._events[kind]
        if self._watch.done():
            raise ProcessError(self._how_it_ended(f"before it said '{kind}'"))
        raise ProcessError(
            f"{self.name} did not say '{kind}' within {timeout_seconds:g} s: {self.last_words}"
        )

    async def wait_end(self) -> int:
        """Wait until it has ended and all that it printed has been read; returns the exit code."""
        await asyncio.shield(self._watch)
        return await self._process.wait()

    async def wait_success(self) -> None:
        """Wait until it has ended.

        Raises:
            ProcessError: with an exit code other than 0; the message has its last words.
        """
        if await self.wait_end() != 0:
            raise ProcessError(self._how_it_ended())

    async def stop(self, grace_seconds: float = _GRACE_SECONDS) -> int:
        """Ask it to end (SIGTERM), and end it (SIGKILL) if it has not done so in time."""
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_seconds):
                return await self.wait_end()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self.wait_end()

    def tell(self, message: Event) -> None:
        """Write one line of JSON to its standard input, if it was started to listen there."""
        assert self._process.stdin is not None, "started without an ear"
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group; does nothing if it has ended."""
        # While it is not reaped, its id can belong to no one else.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _said(self, kind: str) -> asyncio.Future[None]:
        """Is done once an event of this kind was printed."""
        if kind not in self._waiting:
            self._waiting[kind] = asyncio.get_running_loop().create_future()
        return self._waiting[kind]

    def _how_it_ended(self, when: str = "") -> str:
        code = self.returncode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return f"{self.name} ended {how} {when}".rstrip() + f": {self.last_words}"

    async def _follow(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        try:
            await asyncio.gather(
                self._read(self._process.stdout, self._take_output),
                self._read(self._process.stderr, self._complaints.append),
            )
            await self._process.wait()
        finally:
            self._log.close()

    async def _read(self, stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than the limit; the reader has dropped it
                continue
            if not line:
                return
            self._log.write(line)
            self._log.flush()
            take(line.decode(errors="replace").strip())

    def _take_output(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            self._events[event["event"]] = event
            if not (said := self._said(event["event"])).done():
                said.set_result(None)
            if self._on_event is not None:
                self._on_event(event)


class Processes:
    """The programs of one experiment: all have ended when its `async with` block is left.

    Args:
        logs: folder for one log file per program; made if it is not there.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[Child] = []

    async def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        on_event: Callable[[Event], None] | None = None,
        folder: Path | None = None,
        listens: bool = False,
    ) -> Child:
        """Start a program.

        Args:
            name: what to call it in messages and for its log.
            command: its path and arguments.
            on_event: is told every JSON object with an `event` that it prints.
            folder: where it runs; ours if not given.
            listens: whether it can be told something; its standard input ends with us.

        Raises:
            ProcessError: it cannot be started.
        """
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            log = (self._logs / f"{name}.log").open("wb")
        except OSError as error:
            raise ProcessError(f"no log can be kept in {self._logs}: {error.strerror}") from error
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE if listens else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                start_new_session=True,
                limit=_LONGEST_LINE_BYTES,
            )
        except OSError as error:
            log.close()
            raise ProcessError(f"{name} cannot be started: {error.strerror}") from error
        child = Child(name, process, log, on_event)
        self._children.append(child)
        return child

    async def run(self, name: str, command: Sequence[str]) -> None:
        """Run a program to its end.

        Raises:
            ProcessError: it cannot be started, or fails.
        """
        await (await self.start(name, command)).wait_success()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # The last ones started lean on the first ones: end them first.
            for child in reversed(self._children):
                child.signal(signal.SIGTERM)
            await asyncio.gather(*(child.stop() for child in self._children))
        finally:
            for child in self._children:  # also when a second Ctrl-C cut the lines above short
                child.signal(signal.SIGKILL)
