"""How many requests are under way at a server, and who waits for one of them to end."""

import asyncio
import math
from collections import deque
from collections.abc import Callable

from toast.policy.crowding import Crowding

__all__ = ["Lanes"]

_MOMENT_SECONDS = 1.0


class Lanes:
    """Lets requests through, first come first served, as many at once as `Crowding` says.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._crowding = Crowding()
        self._under_way = 0
        self._answering = 0
        self._answered_at = -math.inf
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_answering(self) -> bool:
        """Whether the server is answering some request, or did so a moment ago."""
        return self._answering > 0 or self._clock() - self._answered_at < _MOMENT_SECONDS

    async def enter(self) -> None:
        """Wait until one more request may be made; `leave` must follow."""
        while self._under_way >= self._crowding.width:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # it was our turn: it is another's now
                raise
        self._under_way += 1

    def leave(self) -> None:
        """A request is over."""
        self._under_way -= 1
        self._wake()

    def answer_begins(self) -> None:
        """The server has let a request in; `answer_ends` must follow."""
        self._answering += 1
        self._crowding.answered(self._clock())
        self._wake()

    def answer_ends(self) -> None:
        """An answer is through, or broke off."""
        self._answering -= 1
        self._answered_at = self._clock()

    async def refused(self) -> bool:
        """A request was turned away: wait, unless others are under way that may end before that.

        Returns:
            Whether the server is worth asking again; it counts as down otherwise.
        """
        wait = self._crowding.refused(self._clock(), self._answering)
        if wait is None:
            self._crowding.reset()
            while self._waiting:
                self._wake()
            return False
        if self._under_way <= self._crowding.width and wait:
            await asyncio.sleep(wait)
            self._crowding.waited()
        return True

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
