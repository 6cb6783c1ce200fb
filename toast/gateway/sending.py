"""Sending what a range plan says, from a film that may still be arriving."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final, cast

from aiohttp import web

from toast.common.errors import ToastError
from toast.common.ranges import RangePlan
from toast.gateway.source import ByteStream, FilmSource

__all__ = ["Sender"]

_END: Final = b""


class Sender:
    """Sends films, and knows how many answers are under way.

    Args:
        write_bytes: most that is handed to a connection before waiting until it has been taken.

    Attributes:
        bytes_sent: film bytes handed to players so far.
        readers: answers that are being sent now.
    """

    def __init__(self, write_bytes: int) -> None:
        self.bytes_sent = 0
        self.readers = 0
        self._write_bytes = write_bytes
        self._idle = asyncio.Event()
        self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until no answer is being sent, and what was sent has left this process."""
        await self._idle.wait()

    async def send(
        self, request: web.Request, source: FilmSource, plan: RangePlan, headers: dict[str, str]
    ) -> web.StreamResponse:
        """Answer a request as planned, with these fields."""
        response = web.StreamResponse(status=plan.status, headers=headers)
        if not plan.parts:
            await response.prepare(request)
            await response.write_eof()
            return response
        self.readers += 1
        self._idle.clear()
        try:
            return await self._send_film(request, response, source, plan)
        except ConnectionError:
            return response  # the player left
        finally:
            self.readers -= 1
            if not self.readers:
                self._idle.set()

    async def _send_film(
        self,
        request: web.Request,
        response: web.StreamResponse,
        source: FilmSource,
        plan: RangePlan,
    ) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            return response  # the player left before its answer began
        # Wait until the kernel has everything, not only most of it: then "sent" means sent.
        cast("asyncio.WriteTransport", transport).set_write_buffer_limits(high=0)
        whole = False
        try:
            for part in plan.parts:
                async with contextlib.aclosing(source.read(part.start, part.end)) as stream:
                    # Only when the first bytes are there is it known that this can be a 200 or 206.
                    first = await anext(stream, _END)
                    if not response.prepared:
                        await response.prepare(request)
                    if part.head:
                        await response.write(part.head)
                    whole = await self._pass_on(first, stream, response, part.end - part.start)
                if not whole:
                    break
        except ToastError as error:
            if not response.prepared:
                text = f"{error}\n"
                return web.Response(status=503, text=text, headers={"Retry-After": "1"})
            whole = False
        if not whole:
            # Fewer bytes than promised: break the connection, so that no player takes it for whole.
            transport.abort()
            return response
        if plan.tail:
            await response.write(plan.tail)
        await response.write_eof()
        return response

    async def _pass_on(
        self, first: bytes, stream: ByteStream, response: web.StreamResponse, missing: int
    ) -> bool:
        """Send `missing` bytes of what the stream gives; returns whether it gave that many."""
        chunk: bytes | None = first
        while chunk is not None:
            for piece in self._pieces(memoryview(chunk)[:missing]):
                await response.write(piece)
                self.bytes_sent += len(piece)
                missing -= len(piece)
            if not missing:
                return True
            chunk = await anext(stream, None)
        return False

    def _pieces(self, chunk: memoryview) -> Iterator[memoryview]:
        for at in range(0, len(chunk), self._write_bytes):
            yield chunk[at : at + self._write_bytes]
