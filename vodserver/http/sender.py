"""Films to sockets, by sendfile(2) from the kernel's memory and without blocking the event loop.

uvloop has no sendfile, and asyncio's needs a task for each: this one is driven by the socket's own
readiness, on either loop. What is not in memory is awaited in a task of its own; nothing else of
the connection waits meanwhile.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final, Protocol

from vodserver.errors import ReadError
from vodserver.store import Ready, Title

__all__ = ["FilmSource", "Sending"]

_MORE: Final = getattr(socket, "MSG_MORE", 0)


class FilmSource(Protocol):
    """Where films come from: the store in this process, or the process that has it."""

    def titles(self) -> list[Title]:
        """Every title."""
        ...

    def title(self, title_id: str) -> Title | None:
        """The title of this id, if there is one."""
        ...

    def ready(self, title: Title, at: int, end: int) -> Ready | None:
        """What can be sent of bytes [at, end) without waiting, from `at` on; None if nothing."""
        ...

    async def fetch(self, title: Title, at: int, end: int) -> Ready:
        """Wait for bytes [at, end), as far as one extent goes.

        Raises:
            ReadError: no replica holds what was written.
        """
        ...

    def note_resident(self, disk: int, size: int) -> None:
        """Count bytes that were sent without asking the disk."""
        ...


class Sending:
    """Bytes of a film on their way into a socket.

    Args:
        source: where the film is.
        title: which film.
        at: first byte to send.
        end: one past the last.
        sock: where to, not blocking; nobody else writes to it meanwhile.
        head: bytes to send first.
        chunk_bytes: most handed to the socket before others have their turn.
        count: told how many bytes the kernel took.
        done: called once, at the end: None, or what went wrong.
        wait: asked before each chunk how long it has to wait, in seconds; told the bytes that it
            would like to send. None: no limits.
    """

    def __init__(
        self,
        source: FilmSource,
        title: Title,
        at: int,
        end: int,
        *,
        sock: socket.socket,
        head: bytes = b"",
        chunk_bytes: int,
        count: Callable[[int], None],
        done: Callable[[Exception | None], None],
        wait: Callable[[int], float] | None = None,
    ) -> None:
        self._source = source
        self._title = title
        self._at = at
        self._end = end
        self._sock = sock
        self._fd = sock.fileno()
        self._head = memoryview(head)
        self._chunk = chunk_bytes
        self._count = count
        self._done: Callable[[Exception | None], None] | None = done
        self._wait = wait
        self._loop = asyncio.get_running_loop()
        self._writer = False
        self._fetching: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fetched: Ready | None = None

    def start(self) -> None:
        """Begin; `done` may be called before this returns."""
        self._go()

    def cancel(self) -> None:
        """Stop, without a call of `done`."""
        self._done = None
        self._stop()

    def _stop(self) -> None:
        if self._writer:
            self._writer = False
            self._loop.remove_writer(self._fd)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None

    def _finish(self, error: Exception | None) -> None:
        self._stop()
        done, self._done = self._done, None
        if done is not None:
            done(error)

    def _go(self) -> None:
        """Send what the socket takes of one chunk."""
        if self._done is None:
            return
        try:
            goes_on = self._send_head() and self._send_chunk()
        except BlockingIOError:
            goes_on = True
        except OSError as error:
            self._finish(error)
            return
        if self._at >= self._end and not self._head:
            self._finish(None)
        elif goes_on and not self._writer:
            self._writer = True
            self._loop.add_writer(self._fd, self._go)

    def _send_head(self) -> bool:
        """Send what is left of the head; True when nothing is."""
        while self._head:
            sent = self._sock.send(self._head, _MORE if self._at < self._end else 0)
            self._count(sent)
            self._head = self._head[sent:]
        return True

    def _send_chunk(self) -> bool:
        """Send a part of the film; False if it has to be waited for."""
        if self._at >= self._end:
            return False
        stop = min(self._end, self._at + self._chunk)
        if self._wait is not None and self._is_too_soon(stop - self._at):
            return False
        ready, fetched = self._source.ready(self._title, self._at, stop), self._fetched
        self._fetched = None
        if ready is None and fetched is not None and fetched.view is not None:
            ready = fetched  # its bytes are at hand, whatever became of the page cache
        if ready is None:
            self._pause()
            self._fetching = self._loop.create_task(self._fetch(stop))
            return False
        if ready.file is not None:
            sent = os.sendfile(self._fd, ready.file.fd, ready.offset, ready.size)
            if sent == 0:
                raise ReadError(f"a replica of '{self._title.id}' became shorter")
        else:
            assert ready.view is not None
            sent = self._sock.send(ready.view)
            if sent < ready.size and ready is fetched:
                left = ready.size - sent
                self._fetched = Ready(None, 0, left, ready.disk, ready.view[sent:])
        self._at += sent
        self._count(sent)
        if fetched is None:
            self._source.note_resident(ready.disk, sent)
        return True

    def _is_too_soon(self, size: int) -> bool:
        assert self._wait is not None
        seconds = self._wait(size)
        if seconds <= 0:
            return False
        self._pause()
        self._timer = self._loop.call_later(seconds, self._go)
        return True

    def _pause(self) -> None:
        if self._writer:
            self._writer = False
            self._loop.remove_writer(self._fd)

    async def _fetch(self, stop: int) -> None:
        try:
            self._fetched = await self._source.fetch(self._title, self._at, stop)
        except ReadError as error:
            self._fetching = None
            self._finish(error)
            return
        self._fetching = None
        self._go()
