"""The side of the control socket that has the store."""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Final

from toast.common.errors import ToastError
from vodserver.control import address, wire
from vodserver.control.registry import Operation, find
from vodserver.errors import ControlError, ControlUsageError
from vodserver.store import Store

__all__ = ["ControlServer"]

MAX_CONNECTIONS: Final = 16
_REQUEST_SECONDS: Final = 10.0
_FAREWELL_SECONDS: Final = 5.0
_UNREAD_BYTES: Final = 64 * 1024
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: struct ucred, unix(7)

_log = logging.getLogger(__name__)


class ControlServer:
    """Runs operations on a store for commands that ask over the socket.

    Args:
        store: opened by this process, which runs the loop of `start`.
        status: what the answer to the operation `status` says besides, as `server`: HTTP, seed.
    """

    def __init__(
        self, store: Store, *, status: Callable[[], Awaitable[dict[str, Any]]] | None = None
    ) -> None:
        self._store = store
        self._status = status
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._mutating: str | None = None
        self._closing = False

    async def start(self) -> None:
        """Listen.

        Raises:
            ControlError: the store's directory takes no socket.
        """
        bound = address.bind(self._store.path)
        self._server = await asyncio.start_unix_server(
            self._accept, sock=bound, limit=wire.MAX_REQUEST_BYTES
        )

    async def close(self) -> None:
        """Stop listening, cancel what runs, and wait until it has ended."""
        self._closing = True
        if self._server is None:
            return
        self._server.close()
        address.unbind(self._store.path)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "the stream server makes a task for every connection"
        self._connections.add(task)
        try:
            line = await self._answer(reader, writer)
            writer.write(line)
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await writer.drain()
        except (OSError, TimeoutError):
            pass  # it went away: nobody is there to be told
        except asyncio.CancelledError:
            # From `close` alone. It ends here: the stream server would log it as a fault.
            writer.write(wire.encode_error(ControlError("the server is being stopped", 130)))
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Read the request, run it, and return the line that ends the conversation."""
        try:
            self._check_peer(writer)
            name, arguments = wire.decode_request(await _read_request(reader))
            chosen = find(name)
            return wire.encode("result", await self._run(chosen, arguments, reader, writer))
        except ToastError as error:
            return wire.encode_error(error)
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the server goes on, and its log tells
            _log.exception("an operation failed that should not")
            return wire.encode_error(ControlError("the operation failed: see the server's log"))

    def _check_peer(self, writer: asyncio.StreamWriter) -> None:
        if self._closing:
            raise ControlError("the server is being stopped")
        if len(self._connections) > MAX_CONNECTIONS:
            raise ControlError("too many commands at a time: try again when some have ended")
        plug = writer.get_extra_info("socket")
        # The file's mode keeps others out; this does so where a file system ignores modes.
        packed = plug.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(packed)
        if user not in {0, os.geteuid()}:
            raise ControlError("only the user who runs the server may command it")

    async def _run(
        self,
        chosen: Operation,
        arguments: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> dict[str, Any]:
        if chosen.mutates:
            if self._mutating is not None:
                raise ControlError(
                    f"'{self._mutating}' is under way: wait until it has ended, or stop it"
                )
            self._mutating = chosen.name
        try:
            result = await _unless_gone(
                chosen.function(self._store, arguments, _teller(writer)), reader
            )
            if chosen.name == "status":
                facts = {} if self._status is None else await self._status()
                result = {**result, "server": {**facts, "operation": self._mutating}}
            return result
        finally:
            if chosen.mutates:
                self._mutating = None


def _teller(writer: asyncio.StreamWriter) -> Callable[[dict[str, Any]], None]:
    def tell(progress: dict[str, Any]) -> None:
        # Who does not read misses some: progress is a display, and memory is bounded.
        if writer.transport.get_write_buffer_size() < _UNREAD_BYTES:
            writer.write(wire.encode("progress", progress))

    return tell


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            line = await reader.readline()
    except TimeoutError:
        raise ControlUsageError(f"no request came within {_REQUEST_SECONDS:g} s") from None
    except ValueError:
        raise ControlUsageError(
            f"the request is longer than {wire.MAX_REQUEST_BYTES} bytes"
        ) from None
    return line


async def _unless_gone(
    work: Awaitable[dict[str, Any]], reader: asyncio.StreamReader
) -> dict[str, Any]:
    """The result of the work, which is cancelled when the client hangs up."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)
    if working.cancelled():
        raise ControlError("interrupted", 130)
    return working.result()
