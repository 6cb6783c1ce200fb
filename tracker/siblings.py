"""Several processes that answer on one port, and tell each other what was announced.

Each listens on a socket of the file system in a folder that only their owner can enter, and calls
all others. Whoever is called is told everything at first, and news from then on: so one that was
killed and started again knows all swarms as soon as another one has called it.

A frame is a length (four bytes, big-endian, of what follows), a kind (one byte) and its content.
"""

import asyncio
import contextlib
import json
import logging
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tracker.ending import end_tasks

__all__ = ["SiblingEvents", "SiblingPlace", "Siblings"]

_LOG: Final = logging.getLogger("tracker")

_NEWS, _COUNTS = b"n", b"c"
_MOST_FRAME_BYTES: Final = 1 << 20
_PATH_BYTES: Final = 100
_CALL_SECONDS: Final = 0.2
_SEND_SECONDS: Final = 10.0
"""A sibling that reads nothing for so long is hung up on, and told everything when it is back."""

_MOST_WAITING: Final = 1000


@dataclass(frozen=True, slots=True)
class SiblingPlace:
    """Which of several processes this is.

    Attributes:
        folder: where all of them listen.
        number: this one, from 0.
        count: of all.
        secret: what their connection ids are made with: 32 bytes.
    """

    folder: Path
    number: int
    count: int
    secret: bytes


class SiblingEvents(Protocol):
    """Whom siblings speak to."""

    def everything(self) -> Iterable[bytes]:
        """All news that there are, for one who has just come."""
        ...

    def counts(self) -> Mapping[str, float]:
        """What this process has counted."""
        ...

    def heard(self, news: bytes) -> None:
        """A sibling has told something."""
        ...


class Siblings:
    """The other processes, as one of them sees them.

    Args:
        place: which this is.
        events: whom to tell what they say.
    """

    def __init__(self, place: SiblingPlace, events: SiblingEvents) -> None:
        self._place = place
        self._events = events
        self._counts: dict[int, dict[str, float]] = {}
        self._waiting: dict[int, asyncio.Queue[bytes]] = {}
        self._lost: set[int] = set()
        self._callers: set[asyncio.StreamWriter] = set()
        self._calls: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._folder = -1

    @property
    def connected(self) -> int:
        """How many of the others hear what this one tells."""
        return len(self._waiting)

    def counts_of_others(self) -> list[Mapping[str, float]]:
        """What each of the others has counted, as it last said."""
        return list(self._counts.values())

    def send(self, news: Iterable[bytes]) -> None:
        """Tell all others; who does not keep up is called anew, and then told everything."""
        frames = [_frame(_NEWS, message) for message in news]
        frames.append(_frame(_COUNTS, self._own_counts()))
        for number, queue in self._waiting.items():
            if queue.qsize() + len(frames) > _MOST_WAITING:
                self._lost.add(number)
                continue
            for frame in frames:
                queue.put_nowait(frame)

    async def start(self) -> None:
        """Listen, and call the others again and again."""
        own = self._path(self._place.number)
        own.unlink(missing_ok=True)
        self._listener = await asyncio.start_unix_server(self._listen, self._address(own))
        others = set(range(self._place.count)) - {self._place.number}
        self._calls = {asyncio.create_task(self._keep_calling(number)) for number in others}

    async def close(self) -> None:
        """Neither listen nor call any longer."""
        if self._listener is not None:
            self._listener.close()
        await end_tasks(self._calls)
        for writer in self._callers:
            writer.close()
        self._path(self._place.number).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # whoever made the folder may be gone, and is last then
            self._place.folder.rmdir()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _path(self, number: int) -> Path:
        return self._place.folder / f"{number}.sock"

    def _address(self, path: Path) -> Path:
        """A path that fits into a socket's address, which has room for some hundred bytes."""
        if len(bytes(path)) < _PATH_BYTES:
            return path
        if self._folder < 0:
            self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        return Path(f"/proc/self/fd/{self._folder}") / path.name

    def _own_counts(self) -> bytes:
        counts = {"number": self._place.number, "counts": dict(self._events.counts())}
        return json.dumps(counts).encode()

    async def _keep_calling(self, number: int) -> None:
        while True:
            with contextlib.suppress(OSError):  # it is not there yet, or no longer
                await self._call(number)
            await asyncio.sleep(_CALL_SECONDS)

    async def _call(self, number: int) -> None:
        reader, writer = await asyncio.open_unix_connection(self._address(self._path(number)))
        telling = asyncio.create_task(self._tell(number, writer))
        try:
            await reader.read(1)  # nothing ever comes: it is the end, theirs or ours
        finally:
            await end_tasks({telling})

    async def _tell(self, number: int, writer: asyncio.StreamWriter) -> None:
        """Everything, then what is new, until it does not keep up."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._lost.discard(number)
        # What is announced while everything is told waits behind it.
        self._waiting[number] = queue
        try:
            for message in self._events.everything():
                await _send(writer, _frame(_NEWS, message))
                await asyncio.sleep(0)  # answer in between
            await _send(writer, _frame(_COUNTS, self._own_counts()))
            while number not in self._lost:
                await _send(writer, await queue.get())
        except (OSError, TimeoutError):
            pass  # it is gone, or reads nothing
        finally:
            del self._waiting[number]
            writer.close()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number: int | None = None
        self._callers.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                if not 0 < size <= _MOST_FRAME_BYTES:
                    return
                content = await reader.readexactly(size)
                if content[:1] == _NEWS:
                    self._events.heard(content[1:])
                elif content[:1] == _COUNTS:
                    number = self._take_counts(content[1:])
        except (asyncio.IncompleteReadError, OSError):
            pass
        except ValueError as error:
            _LOG.warning("a sibling says what means nothing: %s", error)
        finally:
            if number is not None:
                self._counts.pop(number, None)
            self._callers.discard(writer)
            writer.close()

    def _take_counts(self, content: bytes) -> int:
        told = json.loads(content)
        number = int(told["number"])
        counts = {str(name): float(value) for name, value in told["counts"].items()}
        if not all(map(math.isfinite, counts.values())):
            raise ValueError("counts that are no numbers")
        self._counts[number] = counts
        return number


def _frame(kind: bytes, content: bytes) -> bytes:
    return (len(content) + 1).to_bytes(4, "big") + kind + content


async def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(frame)
    async with asyncio.timeout(_SEND_SECONDS):
        await writer.drain()
