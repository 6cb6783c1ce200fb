"""Films to sockets, by sendfile(2) from the kernel's memory and without blocking the event loop.

uvloop has no sendfile, and asyncio's needs a task for each: this one is driven by the socket's own
readiness, on either loop (`Writable`). What is not in memory is awaited in a task of its own;
nothing else of the connection waits meanwhile.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Final, Protocol

from vodserver.errors import ReadError, ReplicaError
from vodserver.http.writable import Writable
from vodserver.store import Ready, Title

__all__ = ["FilmSource", "Pacer", "Sending", "send_at_once"]

_OF_DISK: Final = frozenset({errno.EIO, errno.EBADMSG, errno.EUCLEAN, errno.ESTALE})
_MOST_FAULTS: Final = 4
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

    async def fetch(self, title: Title, at: int, end: int, *, keep: bool = False) -> Ready:
        """Wait for bytes [at, end), as far as one extent goes.

        Args:
            title: which film.
            at: first byte.
            end: one past the last.
            keep: hand over the bytes themselves, whether they are in memory or not.

        Raises:
            ReadError: no replica holds what was written.
        """
        ...

    def note_fault(self, title: Title, at: int, disk: int, fault: str) -> None:
        """The replica with byte `at` on this disk cannot be sent: do not offer it again."""
        ...

    def note_resident(self, disk: int, size: int) -> None:
        """Count bytes that were sent without asking the disk."""
        ...


class Pacer(Protocol):
    """Says when a connection may send."""

    async def before(self, count: int) -> None:
        """Wait until `count` more bytes may go."""
        ...

    def sent(self, count: int) -> None:
        """So many went."""
        ...


def send_at_once(
    source: FilmSource, title: Title, start: int, end: int, into: tuple[socket.socket, bytes]
) -> tuple[int, int, bool]:
    """Send an answer as far as it goes in one go: most small ones go whole, and need no `Sending`.

    Args:
        source: where the film is.
        title: which film.
        start: first byte.
        end: one past the last.
        into: the socket, not blocking, and what stands before the film's bytes.

    Returns:
        How many bytes of the head went, how many of the film, and whether the socket is full.

    Raises:
        OSError: the connection is gone.
    """
    sock, head = into
    at, headed, fd = start, 0, sock.fileno()
    while at < end:
        ready = source.ready(title, at, end)
        if ready is None or ready.file is None:
            break
        try:
            if not headed:
                headed = sock.send(head, _MORE)
            sent = _send_file(fd, ready) if headed == len(head) else 0
        except BlockingIOError:
            return headed, at - start, True
        except ReplicaError as error:  # whoever goes on from here has another replica
            source.note_fault(title, at, ready.disk, str(error))
            break
        except OSError:
            if headed:  # what went is counted first; whoever goes on meets it again
                break
            raise
        if sent:
            source.note_resident(ready.disk, sent)
            at += sent
        if sent < ready.size:
            return headed, at - start, True
    return headed, at - start, False


def _send_file(fd: int, ready: Ready) -> int:
    """Send what the socket takes of a replica; how much that was.

    Raises:
        ReplicaError: the replica is at fault; no byte went.
        BlockingIOError: the socket takes nothing now.
        OSError: the connection is gone.
    """
    assert ready.file is not None
    try:
        sent = os.sendfile(fd, ready.file.fd, ready.offset, ready.size)
    except OSError as error:
        # No socket fails with these: memory lost the part meanwhile, and its disk could not read it
        # again.
        if error.errno not in _OF_DISK:
            raise
        raise ReplicaError(ready.disk, f"it cannot be read: {error.strerror}") from error
    if sent == 0:
        raise ReplicaError(ready.disk, "it is shorter than it was written")
    return sent


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
        writable: tells when the socket takes more.
        count: told how many bytes the kernel took.
        done: called once, at the end: None, or what went wrong.
        pacer: says when each chunk may go; None: as fast as the socket takes it.
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
        writable: Writable,
        count: Callable[[int], None],
        done: Callable[[Exception | None], None],
        pacer: Pacer | None = None,
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
        self._pacer = pacer
        self._leave = 0
        self._loop = asyncio.get_running_loop()
        self._writable = writable
        self._writer = False
        self._waiting: asyncio.Task[None] | None = None
        self._fetched: Ready | None = None
        self._faults = 0
        """Replicas that failed since a byte was sent."""

    def start(self, *, full: bool = False) -> None:
        """Begin; `done` may be called before this returns.

        Args:
            full: the socket is, or others have their turn first: wait until it takes more.
        """
        if full:
            self._await_client()
        else:
            self._go()

    @property
    def waits_for_client(self) -> bool:
        """Whether all that it waits for is that the client takes something."""
        return self._writer

    def cancel(self) -> None:
        """Stop, without a call of `done`."""
        self._done = None
        self._stop()

    def _stop(self) -> None:
        self._pause()
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _finish(self, error: Exception | None) -> None:
        self._stop()
        done, self._done = self._done, None
        if done is not None:
            done(error)

    def _go(self) -> None:
        """Send what the socket takes of one chunk."""
        self._writer = False
        if self._done is None:
            return
        try:
            ready = self._obtain() if self._at < self._end else None
            if ready is None and self._at < self._end:
                return  # it has to be waited for
            self._send_head()
            if ready is not None:
                self._send_part(ready)
        except ReplicaError as error:
            self._pass_over(error)
            return
        except BlockingIOError:
            pass
        except (OSError, ReadError) as error:
            self._finish(error)
            return
        if self._at >= self._end and not self._head:
            self._finish(None)
        else:
            self._await_client()

    def _await_client(self) -> None:
        self._writer = True
        self._writable.wait(self._fd, self._go)

    def _obtain(self) -> Ready | None:
        """The next part, if it may go and can go now; else whatever it waits for is begun."""
        stop = min(self._end, self._at + self._chunk)
        if self._pacer is not None:
            if self._leave <= 0:
                self._wait_for(self._take_leave(self._pacer, stop - self._at))
                return None
            stop = min(stop, self._at + self._leave)
        ready = self._source.ready(self._title, self._at, stop)
        if ready is None and self._fetched is not None and self._fetched.view is not None:
            ready = self._fetched  # at hand, whatever became of the page cache
        if ready is None:
            self._wait_for(self._fetch(stop))
        return ready

    def _send_head(self) -> None:
        while self._head:
            sent = self._sock.send(self._head, _MORE if self._at < self._end else 0)
            self._count(sent)
            self._head = self._head[sent:]

    def _send_part(self, ready: Ready) -> None:
        if ready.file is not None:
            sent = _send_file(self._fd, ready)
        else:
            assert ready.view is not None
            sent = self._sock.send(ready.view)
        self._at += sent
        self._faults = 0
        self._count(sent)
        if self._pacer is not None:
            self._leave -= sent
            self._pacer.sent(sent)
        if self._fetched is None:
            self._source.note_resident(ready.disk, sent)
        elif ready is self._fetched and sent < ready.size:
            view = None if ready.view is None else ready.view[sent:]
            self._fetched = Ready(None, 0, ready.size - sent, ready.disk, view)
        else:
            self._fetched = None

    def _pass_over(self, error: ReplicaError) -> None:
        """Go on with another replica, from the same byte; a film does not have many."""
        self._faults += 1
        if self._faults > _MOST_FAULTS:
            self._finish(error)
            return
        self._fetched = None
        self._source.note_fault(self._title, self._at, error.disk, str(error))
        self._pause()
        # In its turn, and not from within: others wait for theirs.
        self._wait_for(self._go_on())

    async def _go_on(self) -> None:
        self._waiting = None
        self._go()

    def _pause(self) -> None:
        if self._writer:
            self._writer = False
            self._writable.forget(self._fd)

    def _wait_for(self, what: Coroutine[None, None, None]) -> None:
        self._pause()
        self._waiting = self._loop.create_task(what)

    async def _take_leave(self, pacer: Pacer, size: int) -> None:
        try:
            await pacer.before(size)
        except Exception as error:  # noqa: BLE001 - else the connection would wait for ever
            self._waiting = None
            self._finish(error)
            return
        self._leave = size
        self._waiting = None
        self._go()

    async def _fetch(self, stop: int) -> None:
        try:
            self._fetched = await self._source.fetch(self._title, self._at, stop)
        except Exception as error:  # noqa: BLE001 - else the connection would wait for ever
            self._waiting = None
            self._finish(error)
            return
        self._waiting = None
        self._go()
