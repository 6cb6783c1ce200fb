"""Sending a film, or ranges of it, without ever holding more than a chunk of it."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web

from toast.common.ranges import Part, RangePlan, plan_range
from vodserver.errors import ReadError
from vodserver.http.counted import CountedTransport
from vodserver.http.sender import FilmSource, Pacer
from vodserver.store import Title

__all__ = ["asked_fields", "content_fields", "media_type", "send_content"]

_TYPES: Final = {"mp4": "video/mp4", "matroska": "video/x-matroska", "webm": "video/webm"}
_CONDITIONS: Final = (
    hdrs.RANGE,
    hdrs.IF_RANGE,
    hdrs.IF_MATCH,
    hdrs.IF_NONE_MATCH,
    hdrs.IF_MODIFIED_SINCE,
    hdrs.IF_UNMODIFIED_SINCE,
)
_FIRST_BYTES: Final = 64 * 1024
_MOST_TRIES: Final = 3
_COPY_BYTES: Final = 256 * 1024


def media_type(title: Title) -> str:
    """What a film is, for Content-Type."""
    return _TYPES.get(str(title.media.get("container", "")), "application/octet-stream")


def content_fields(title: Title) -> dict[str, str]:
    """The fields of an answer with one range of a film that are the same for every range."""
    plan = _plan("GET", {"Range": "bytes=0-0"}, title)
    ours = {hdrs.CONTENT_RANGE, hdrs.CONTENT_LENGTH}
    return {name: value for name, value in plan.headers.items() if name not in ours}


def _plan(method: str, fields: dict[str, str], title: Title) -> RangePlan:
    return plan_range(
        method,
        fields,
        length=title.film_bytes,
        etag=f'"{title.info_hash}"',
        last_modified=title.added,
        content_type=media_type(title),
        multipart=True,
    )


def asked_fields(request: web.Request) -> dict[str, str]:
    """The fields of a request that say which part is wanted and when, each joined to one line."""
    return {
        str(name): ", ".join(request.headers.getall(name))
        for name in _CONDITIONS
        if name in request.headers
    }


async def send_content(
    request: web.Request,
    source: FilmSource,
    title: Title,
    *,
    chunk_bytes: int,
    send_timeout: float,
    pacer: Pacer | None = None,
) -> web.StreamResponse:
    """Answer a GET or HEAD of a film.

    Args:
        request: the request.
        source: where the film is.
        title: which film.
        chunk_bytes: read and handed to the connection at a time.
        send_timeout: seconds in which the client must take some of what waits for it.
        pacer: says when each chunk may go; None: as fast as the client takes it.

    Returns:
        The response, sent; its connection is cut where the film could not be sent whole.

    Raises:
        HTTPServiceUnavailable: the first bytes cannot be read from any disk.
        ConnectionError: the client went away.
    """
    plan = _plan(request.method, asked_fields(request), title)
    response = web.StreamResponse(status=plan.status, headers=dict(plan.headers))
    if plan.status not in {200, 206, 304}:
        response.content_length = 0
    if plan.parts:
        first = plan.parts[0]
        # Before the status line goes out: a film that cannot be read deserves an honest one.
        try:
            await source.fetch(title, first.start, min(first.end, first.start + _FIRST_BYTES))
        except ReadError as error:
            raise web.HTTPServiceUnavailable(text=f"{error}\n") from error
    await response.prepare(request)
    how = _How(source, title, chunk_bytes, send_timeout, pacer)
    try:
        for part in plan.parts:
            await _send_part(request, response, part, how)
        async with asyncio.timeout(send_timeout):
            if plan.tail:
                await response.write(plan.tail)
            await response.write_eof()
    except (ReadError, TimeoutError):
        # The length is promised already: only a cut connection says that the rest will not come.
        if request.transport is not None:
            request.transport.abort()
    return response


@dataclass(frozen=True, slots=True)
class _How:
    source: FilmSource
    title: Title
    chunk_bytes: int
    send_timeout: float
    pacer: Pacer | None


async def _send_part(
    request: web.Request, response: web.StreamResponse, part: Part, how: _How
) -> None:
    """Send a slice and what stands before it."""
    transport: Any = request.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    if isinstance(transport, CountedTransport) and request.get_extra_info("sslcontext") is None:
        await transport.connection.send_film(
            how.source,
            how.title,
            (part.start, part.end),
            head=part.head,
            chunk_bytes=how.chunk_bytes,
            send_timeout=how.send_timeout,
            pacer=how.pacer,
        )
        return
    # An encrypted connection: the bytes have to pass through here.
    if part.head:
        await response.write(part.head)
    at = part.start
    while at < part.end:
        stop = min(part.end, at + min(how.chunk_bytes, _COPY_BYTES))
        if how.pacer is not None:
            await how.pacer.before(stop - at)
        data = await _bytes_of(how.source, how.title, at, stop)
        async with asyncio.timeout(how.send_timeout):
            await response.write(data)
        if how.pacer is not None:
            how.pacer.sent(len(data))
        at += len(data)


async def _bytes_of(source: FilmSource, title: Title, at: int, stop: int) -> memoryview:
    """Some of a film's bytes, from `at` on."""
    for _ in range(_MOST_TRIES):
        ready = source.ready(title, at, stop)
        if ready is None:
            ready = await source.fetch(title, at, stop)
        data = ready.view
        if data is None and ready.file is not None:
            data = ready.file.read_now(ready.offset, ready.offset + ready.size)
        if data is not None:
            return data
    # Memory keeps nothing, or the file system does not say what it keeps (RWF_NOWAIT).
    ready = await source.fetch(title, at, stop, keep=True)
    assert ready.view is not None
    return ready.view
