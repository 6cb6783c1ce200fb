"""The channel between main process and worker: questions with answers, and news, both ways.

Head of a frame, one of:
    {"ask": ID, "what": NAME, "with": {...}}    a question; the payload goes with it
    {"answer": ID, "result": {...}}             its answer; the payload goes with it
    {"answer": ID, "error": TEXT}               or why there is none
    {"cancel": ID}                              the answer is not wanted any more
    {"tell": NAME, "with": {...}}               news

News and questions arrive in the order in which they were sent, and a question is begun before
later news is heard, unless it is cancelled first.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Awaitable
from typing import Any, Final, Protocol, Self

from toast.common.errors import ToastError
from vodserver.errors import ChannelError
from vodserver.workers.frames import Decoder, Frame, encode

__all__ = ["Answer", "Channel", "Listener"]

_READ_BYTES: Final = 256 * 1024
_MOST_ASKED: Final = 100_000
"""Questions that may be open: more than connections can be."""

_log = logging.getLogger(__name__)

Answer = tuple[dict[str, Any], bytes | memoryview]


class Listener(Protocol):
    """Who is at this end."""

    def asked(self, what: str, args: dict[str, Any]) -> Awaitable[Answer]:
        """Answer a question: a result and a payload. Cancelled when nobody waits for it.

        Raises:
            ToastError: there is no answer; the other end is told why.
        """
        ...

    def told(self, what: str, args: dict[str, Any]) -> None:
        """Hear news."""
        ...


class Channel:
    """One end of a channel. Made by `open`; nothing is heard before `start`.

    Attributes:
        closed: set when nothing more will come, whoever closed it.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.closed = asyncio.Event()
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, end: socket.socket) -> Self:
        """Talk over one end of a socket pair, which is the channel's from now on."""
        end.setblocking(False)
        return cls(*await asyncio.open_connection(sock=end))

    def start(self, listener: Listener) -> None:
        """Begin to hear the other end."""
        self._listener = listener
        self._task = asyncio.create_task(self._run(), name="channel")

    async def ask(self, what: str, **args: Any) -> tuple[dict[str, Any], bytes]:
        """Ask the other end.

        Returns:
            Its result and payload.

        Raises:
            ChannelError: it cannot say, or is not there any more.
        """
        if self.closed.is_set():
            raise ChannelError("the other process is gone")
        number = next(self._ids)
        future: asyncio.Future[tuple[dict[str, Any], bytes]]
        self._open[number] = future = asyncio.get_running_loop().create_future()
        try:
            self._send({"ask": number, "what": what, "with": args})
            return await future
        except asyncio.CancelledError:
            if not future.done() or future.cancelled():
                self._send({"cancel": number})
            raise
        finally:
            self._open.pop(number, None)

    def tell(self, what: str, **args: Any) -> None:
        """Tell the other end something; nothing happens if it is not there any more."""
        self._send({"tell": what, "with": args})

    async def drain(self) -> None:
        """Wait until the other end has taken most of what it was sent."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def abort(self) -> None:
        """End, whatever the other end has not taken yet."""
        self._writer.transport.abort()
        await self.close()

    async def close(self) -> None:
        """Send what was told, and end."""
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            self._writer.close()
            await self._writer.wait_closed()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _send(self, head: dict[str, Any], payload: bytes | memoryview = b"") -> None:
        if not self.closed.is_set() and not self._writer.is_closing():
            self._writer.write(encode(head, payload))

    async def _run(self) -> None:
        decoder = Decoder()
        try:
            while data := await self._reader.read(_READ_BYTES):
                for frame in decoder.feed(data):
                    self._take(frame)
        except ConnectionError:
            pass  # it ended before it had read everything
        except ChannelError as error:
            _log.error("the channel between two processes is broken: %s", error)
        except Exception:  # noqa: BLE001 - a message of ours that we do not understand
            _log.exception("the channel between two processes is broken")
        finally:
            self.closed.set()
            self._writer.close()
            for task in self._answering.values():
                task.cancel()
            for future in self._open.values():
                if not future.done():
                    future.set_exception(ChannelError("the other process is gone"))
            self._open.clear()

    def _take(self, frame: Frame) -> None:
        assert self._listener is not None
        match frame.head:
            case {"ask": int(number), "what": str(what), "with": dict(args)}:
                if len(self._answering) >= _MOST_ASKED:
                    raise ChannelError("too many questions are open")
                task = asyncio.create_task(self._answer(number, what, args))
                self._answering[number] = task
                task.add_done_callback(lambda _: self._answering.pop(number, None))
            case {"answer": int(number), "error": str(text)}:
                self._settle(number, ChannelError(text))
            case {"answer": int(number), "result": dict(result)}:
                self._settle(number, (result, frame.payload))
            case {"cancel": int(number)}:
                if number in self._answering:
                    self._answering[number].cancel()
            case {"tell": str(what), "with": dict(args)}:
                self._listener.told(what, args)
            case _:
                raise ChannelError("a message is of no known kind")

    def _settle(self, number: int, with_: "tuple[dict[str, Any], bytes] | ChannelError") -> None:
        future = self._open.pop(number, None)
        if future is None or future.done():
            return  # nobody waits for it any more
        if isinstance(with_, ChannelError):
            future.set_exception(with_)
        else:
            future.set_result(with_)

    async def _answer(self, number: int, what: str, args: dict[str, Any]) -> None:
        assert self._listener is not None
        try:
            result, payload = await self._listener.asked(what, args)
            self._send({"answer": number, "result": result}, payload)
        except ToastError as error:
            self._send({"answer": number, "error": str(error)})
        except Exception:  # noqa: BLE001 - else the other end would wait for ever
            _log.exception("a question of another process failed: %s", what)
            self._send({"answer": number, "error": "the main process failed: see its log"})
