"""What happens, as server-sent events: films that changed, their pieces, removals, the status.

Source of the format: HTML standard, section 9.2 "Server-sent events".
"""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from toast.daemon.errors import DaemonError
from toast.daemon.film import Film

__all__ = ["Events", "pieces_of"]

_MOST_WAITING = 64
"""Events that may wait for one subscriber: one that does not read is let go, and comes back."""


class Events:
    """All subscribers, and what they were told last.

    Args:
        films: the films there are.
        describe: a film as the API shows it.
        status: the status as the API shows it.
        most_subscribers: further ones are refused.
        refresh_seconds: least time between two looks.
    """

    def __init__(
        self,
        *,
        films: Callable[[], list[Film]],
        describe: Callable[[Film], dict[str, Any]],
        status: Callable[[], dict[str, Any]],
        most_subscribers: int,
        refresh_seconds: float,
    ) -> None:
        self._films = films
        self._describe = describe
        self._status = status
        self._most_subscribers = most_subscribers
        self._refresh_seconds = refresh_seconds
        self._subscribers: set[asyncio.Queue[bytes | None]] = set()
        self._anyone = asyncio.Event()
        self._told_films: dict[str, dict[str, Any]] = {}
        self._told_pieces: dict[str, bytes] = {}

    @property
    def subscribers(self) -> int:
        """How many listen."""
        return len(self._subscribers)

    def subscribe(self) -> "asyncio.Queue[bytes | None]":
        """A queue of encoded events, beginning with everything as it is; None is its end.

        Raises:
            DaemonError: too many listen already.
        """
        if len(self._subscribers) >= self._most_subscribers:
            raise DaemonError(f"{self._most_subscribers} event streams are open already")
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        queue.put_nowait(_encode("films", [self._describe(film) for film in self._films()]))
        queue.put_nowait(_encode("status", self._status()))
        self._subscribers.add(queue)
        self._anyone.set()
        return queue

    def unsubscribe(self, queue: "asyncio.Queue[bytes | None]") -> None:
        """Send nothing more to this queue."""
        self._subscribers.discard(queue)

    def tell(self, event: str, data: Any) -> None:
        """Tell every subscriber."""
        encoded = _encode(event, data)
        for queue in list(self._subscribers):
            try:
                queue.put_nowait(encoded)
            except asyncio.QueueFull:
                self._subscribers.discard(queue)
                queue.get_nowait()  # make room for its end
                queue.put_nowait(None)

    def close(self) -> None:
        """End every stream."""
        for queue in self._subscribers:
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(None)
        self._subscribers.clear()

    async def run(self) -> None:
        """Look for changes while anybody listens, until cancelled."""
        while True:
            if not self._subscribers:
                self._anyone.clear()
                self._told_films.clear()
                self._told_pieces.clear()
                await self._anyone.wait()
            self._look()
            await asyncio.sleep(self._refresh_seconds)

    def _look(self) -> None:
        films = self._films()
        shown = {film.id: self._describe(film) for film in films}
        changed = [facts for key, facts in shown.items() if self._told_films.get(key) != facts]
        self._told_films = shown
        if changed:
            self.tell("films", changed)
        pieces = {film.id: film.sources.tobytes() for film in films if film.is_running}
        for film_id, codes in pieces.items():
            if self._told_pieces.get(film_id, codes) != codes:
                self.tell("pieces", {"id": film_id, **_pieces(codes)})
        self._told_pieces = pieces
        self.tell("status", self._status())


def pieces_of(film: Film) -> dict[str, Any]:
    """Where each piece of a film came from: its number of pieces, and base64 of one byte each."""
    return _pieces(film.sources.tobytes())


def _pieces(codes: bytes) -> dict[str, Any]:
    return {"pieces": len(codes), "sources": base64.b64encode(codes).decode("ascii")}


def _encode(event: str, data: Any) -> bytes:
    # JSON has no line breaks of its own, so one `data` line is enough.
    return f"event: {event}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()
