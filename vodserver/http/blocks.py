"""Sending the hashes of a title's blocks, or ranges of them."""

import asyncio
from contextlib import closing
from typing import Final

from aiohttp import hdrs, web

from toast.common.blockhashes import leaves_bytes
from toast.common.ranges import plan_range
from vodserver.errors import ReadError
from vodserver.http.content import asked_fields
from vodserver.http.status import ServedStore
from vodserver.http.stream import SendLimit, SharedCap
from vodserver.store import Title
from vodserver.store.blocks import geometry_of

__all__ = ["send_blocks"]

_CHUNK_BYTES: Final = 256 * 1024
_RETRY_SECONDS: Final = 10


async def send_blocks(
    request: web.Request, store: ServedStore, title: Title, cap: SharedCap, *, send_timeout: float
) -> web.StreamResponse:
    """Answer a GET or HEAD of the hashes of a title's blocks.

    Args:
        request: the request.
        store: where they are.
        title: whose.
        cap: what is sent counts in it.
        send_timeout: seconds in which the client must take a chunk.

    Returns:
        The response, sent; its connection is cut where they could not be sent whole.

    Raises:
        HTTPNotFound: the title has none yet.
        HTTPServiceUnavailable: they cannot be read.
        ConnectionError: the client went away.
    """
    if not title.block_roots:
        raise web.HTTPNotFound(text="the hashes of this title's blocks are not made yet\n")
    plan = plan_range(
        request.method,
        asked_fields(request),
        length=leaves_bytes(geometry_of(title)),
        etag=f'"{title.info_hash}-blocks"',  # they follow from the film, and so does this
        last_modified=title.added,
        content_type="application/octet-stream",
        multipart=True,
    )
    response = web.StreamResponse(status=plan.status, headers=dict(plan.headers))
    if plan.status not in {200, 206, 304}:
        response.content_length = 0
    chunks = [
        (part.head if at == part.start else b"", at, min(at + _CHUNK_BYTES, part.end))
        for part in plan.parts
        for at in range(part.start, part.end, _CHUNK_BYTES)
    ]
    with closing(SendLimit(cap)) as limit:
        try:
            # The first before the status line goes out: what cannot be read deserves an honest one.
            ahead = await store.read_blocks(title, *chunks[0][1:]) if chunks else b""
        except ReadError as error:
            raise web.HTTPServiceUnavailable(
                text=f"{error}\n", headers={hdrs.RETRY_AFTER: str(_RETRY_SECONDS)}
            ) from error
        await response.prepare(request)
        try:
            for number, (head, start, end) in enumerate(chunks):
                data = await store.read_blocks(title, start, end) if number else ahead
                await limit.before(len(data))
                async with asyncio.timeout(send_timeout):
                    await response.write(head + data)
                limit.sent(len(data))
            async with asyncio.timeout(send_timeout):
                await response.write_eof(plan.tail)
        except (ReadError, TimeoutError):
            # The length is promised: only a cut connection says that the rest will not come.
            if request.transport is not None:
                request.transport.abort()
    return response
