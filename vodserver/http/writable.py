"""Waiting until sockets take more: many of them with one system call, and in their order.

An event loop makes a handle for each wait and throws it away afterwards, which takes several system
calls. Here a socket is made known once, armed by one call for each wait, and what became writable
is told in one go for all of them (epoll(7), EPOLLONESHOT).
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final

__all__ = ["Writable"]

_ONCE: Final = select.EPOLLOUT | select.EPOLLONESHOT
_MOST_AT_A_TIME: Final = 64
"""So many go on in one turn of the loop; who became writable first goes first, and what else the
loop has to do is not kept waiting by those who take much."""


class Writable:
    """Calls back when a socket takes more. Used from the running loop's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._poll = select.epoll()
        self._known: set[int] = set()
        self._waiting: dict[int, Callable[[], None]] = {}
        self._loop.add_reader(self._poll.fileno(), self._turn)

    def wait(self, fd: int, then: Callable[[], None]) -> None:
        """Call `then` once, not from within, when the socket takes something or has failed.

        Raises:
            OSError: it is no open socket.
        """
        if fd in self._known:
            self._poll.modify(fd, _ONCE)
        else:
            self._poll.register(fd, _ONCE)
            self._known.add(fd)
        self._waiting[fd] = then

    def forget(self, fd: int) -> None:
        """Wait for it no longer."""
        self._waiting.pop(fd, None)

    def waits(self, fd: int) -> bool:
        """Whether somebody waits for it."""
        return fd in self._waiting

    def leave(self, fd: int) -> None:
        """A socket is about to be closed."""
        self._waiting.pop(fd, None)
        if fd in self._known:
            # Its connection may live on under another descriptor, and would be told of by this one.
            self._known.discard(fd)
            self._poll.unregister(fd)

    def close(self) -> None:
        """Let go of all of them; more than once does no harm."""
        if not self._poll.closed:
            self._loop.remove_reader(self._poll.fileno())
            self._poll.close()
        self._known.clear()
        self._waiting.clear()

    def _turn(self) -> None:
        for fd, _ in self._poll.poll(0, _MOST_AT_A_TIME):
            then = self._waiting.pop(fd, None)
            if then is None:
                continue
            try:
                then()
            except Exception as error:  # noqa: BLE001 - the others were told of only this once
                self._loop.call_exception_handler(
                    {"message": "what waited for a socket failed", "exception": error}
                )
