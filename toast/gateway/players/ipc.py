"""mpv's JSON IPC: commands, their answers, and events, one object on each line.

See "JSON IPC" in mpv's manual. mpv is handed one end of a pair of sockets: no name in the file
system, and nobody else can connect.
"""

import asyncio
import itertools
import json
import socket
from collections.abc import Callable
from typing import Any, Final, Self

from toast.gateway.players.errors import MpvRefusal

__all__ = ["MpvConnection"]

_LINE_BYTES: Final = 1 << 20
_ANSWER_SECONDS: Final = 5.0


class MpvConnection:
    """One end of a conversation with mpv. Made by `open`."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_event: Callable[[dict[str, Any]], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_event = on_event
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}

    @classmethod
    async def open(cls, end: socket.socket, on_event: Callable[[dict[str, Any]], None]) -> Self:
        """Begin a conversation.

        Args:
            end: our socket; closed by `listen`.
            on_event: called with each event.
        """
        reader, writer = await asyncio.open_connection(sock=end, limit=_LINE_BYTES)
        return cls(reader, writer, on_event)

    async def listen(self) -> None:
        """Take answers and events until mpv closes its end."""
        try:
            while line := await self._reader.readline():
                self._take(line)
        except (ConnectionError, ValueError):
            return  # it broke off, or wrote a line without an end
        finally:
            self._writer.close()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(MpvRefusal("mpv is gone"))
            self._answers.clear()

    async def command(self, *words: Any) -> Any:
        """Tell mpv something.

        Returns:
            What it answers; None if it only agrees.

        Raises:
            MpvRefusal: it does not do it, or says nothing.
        """
        if self._writer.is_closing():
            raise MpvRefusal("mpv is gone")
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"command": words, "request_id": number})
        try:
            self._writer.write(f"{line}\n".encode())
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise MpvRefusal("mpv does not answer") from None
        finally:
            self._answers.pop(number, None)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return  # a file name in no encoding, for instance
        if not isinstance(message, dict):
            return
        if "event" in message:
            self._on_event(message)
            return
        answer = self._answers.get(message.get("request_id", 0))
        if answer is None or answer.done():
            return
        if message.get("error") == "success":
            answer.set_result(message.get("data"))
        else:
            answer.set_exception(MpvRefusal(str(message.get("error"))))
