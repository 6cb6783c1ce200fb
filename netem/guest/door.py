"""Where others on this machine have programs run in a guest: a socket for its owner only.

It is abstract: it has no name in any folder, so nothing of it is left behind.
"""

import asyncio
import json
import os
import secrets
import socket
import struct
from types import TracebackType
from typing import Final, Self

from netem.errors import NetemError
from netem.guest.frames import Decoder, Frame, Kind, encode
from netem.guest.guest import Guest, Program

__all__ = ["Door"]

_CREDENTIALS: Final = struct.Struct("iII")
_KILL: Final = 9


class Door:
    """Listens for as long as the block lasts.

    Args:
        guest: runs the programs.

    Attributes:
        name: of the abstract socket.
    """

    def __init__(self, guest: Guest) -> None:
        self.name = f"toast-netem-{os.getpid()}-{secrets.token_hex(8)}"
        self._guest = guest
        self._visits: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(f"\0{self.name}")
        self._server = await asyncio.start_unix_server(self._visit, sock=listening)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)
        program: Program | None = None
        try:
            given = writer.get_extra_info("socket").getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
            )
            if _CREDENTIALS.unpack(given)[1] not in {0, os.geteuid()}:
                return
            program = await self._serve(reader, writer)
        except (ConnectionError, ValueError, NetemError):
            pass
        except asyncio.CancelledError:
            pass  # the network ends, and whoever came is told by the end of the line
        finally:
            if program is not None:
                program.signal(_KILL)  # it may have ended long ago
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Program | None:
        """Until whoever came has gone; returns the program that was started."""
        program: Program | None = None
        message = b""
        decoder = Decoder()

        def hear(frame: Frame) -> None:
            if not writer.is_closing():
                writer.write(encode(0, frame.kind, frame.data))

        while data := await reader.read(1 << 16):
            for frame in decoder.feed(data):
                if frame.kind in {Kind.START, Kind.BEGIN}:
                    message += frame.data
                    if frame.kind is Kind.BEGIN and program is None:
                        what = json.loads(message)
                        program = await self._guest.start(
                            what["argv"], hear, folder=what["cwd"], environment=what["env"]
                        )
                elif program is not None and frame.kind is Kind.INPUT:
                    program.write(frame.data)
                elif program is not None and frame.kind is Kind.SIGNAL:
                    program.signal(int(frame.data))
        return program
