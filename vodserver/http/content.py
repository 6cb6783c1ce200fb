"""Sending a film, or a range of it, without ever holding more than a chunk of it."""

import asyncio
from typing import Final

from aiohttp import hdrs, web

from toast.common.ranges import plan_range
from vodserver.errors import ReadError
from vodserver.store import Store, Title

__all__ = ["send_content"]

_TYPES: Final = {"mp4": "video/mp4", "matroska": "video/x-matroska", "webm": "video/webm"}
_CONDITIONS: Final = (
    hdrs.RANGE,
    hdrs.IF_RANGE,
    hdrs.IF_MATCH,
    hdrs.IF_NONE_MATCH,
    hdrs.IF_MODIFIED_SINCE,
    hdrs.IF_UNMODIFIED_SINCE,
)


async def send_content(
    request: web.Request, store: Store, title: Title, *, chunk_bytes: int, send_timeout: float
) -> web.StreamResponse:
    """Answer a GET or HEAD of a film.

    Args:
        request: the request.
        store: where the film is.
        title: which film.
        chunk_bytes: read and handed to the connection at a time.
        send_timeout: seconds in which the client must take what waits for it.

    Returns:
        The response, sent; its connection is cut where the film could not be sent whole.

    Raises:
        HTTPServiceUnavailable: the first bytes cannot be read from any disk.
    """
    fields = {
        str(name): ", ".join(request.headers.getall(name))
        for name in _CONDITIONS
        if name in request.headers
    }
    plan = plan_range(
        request.method,
        fields,
        length=title.film_bytes,
        etag=f'"{title.info_hash}"',
        last_modified=title.added,
    )
    response = web.StreamResponse(status=plan.status, headers=dict(plan.headers))
    if plan.status in {200, 206}:
        container = str(title.media.get("container", ""))
        response.content_type = _TYPES.get(container, "application/octet-stream")
    elif plan.status != 304:
        response.content_length = 0
    at = plan.start
    data = memoryview(b"")
    if at < plan.end:
        # Read before the status line goes out: a film that cannot be read deserves an honest one.
        try:
            data = await store.read(title, at, _chunk_end(at, plan.end, chunk_bytes))
        except ReadError as error:
            raise web.HTTPServiceUnavailable(text=f"{error}\n") from error
    await response.prepare(request)
    try:
        while at < plan.end:
            async with asyncio.timeout(send_timeout):
                await response.write(data)
            at += len(data)
            if at < plan.end:
                data = await store.read(title, at, _chunk_end(at, plan.end, chunk_bytes))
        async with asyncio.timeout(send_timeout):
            await response.write_eof()
    except (ReadError, TimeoutError):
        # The length is promised already: only a cut connection says that the rest will not come.
        if request.transport is not None:
            request.transport.abort()
    return response


def _chunk_end(at: int, end: int, chunk_bytes: int) -> int:
    """Where the chunk that begins at a byte ends; chunks are aligned, as checksums are."""
    return min(end, (at // chunk_bytes + 1) * chunk_bytes)
