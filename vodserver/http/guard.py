"""What every request passes that aiohttp handles: limits before it, an account after it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.typedefs import Middleware

from vodserver.http.answers import COMMON_FIELDS, answer_preflight
from vodserver.settings import ServeSettings

__all__ = ["ROUTE", "answer_failures", "make_guard", "make_protocol", "make_recorder"]

_log = logging.getLogger(__name__)

ROUTE: Final = web.RequestKey("route", str)
"""The route that a request met, as routes are written; absent where it met none."""

Authorize = Callable[[str, Mapping[str, str], float, str | None], str | None]
Gone = Callable[[web.Request, float], None]
Note = Callable[[web.BaseRequest, web.StreamResponse, float], None]
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Protocol(web.RequestHandler):
    """aiohttp's, whose answers to what is no request say neither its version nor a traceback."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's; it repeats what the client sent
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            raise exc  # nobody is there to be answered: that is no fault, and aiohttp knows it
        if status >= 500:
            _log.error("request from %s failed", request.remote, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already: no other can be given")
        text = "the server failed; its log says why" if status >= 500 else "this is no request"
        response = web.Response(status=status, text=f"{text}\n", headers=COMMON_FIELDS)
        response.force_close()
        return response


def make_protocol(
    server: web.Server,
    settings: ServeSettings,
    recorder: type[AbstractAccessLogger],
) -> Callable[[], asyncio.Protocol]:
    """A maker of aiohttp's protocols, with this server's limits.

    Args:
        server: that dispatches their requests.
        settings: of the limits.
        recorder: told of every answer.
    """
    loop = asyncio.get_running_loop()

    def make() -> asyncio.Protocol:
        return _Protocol(
            server,
            loop=loop,
            keepalive_timeout=settings.keepalive_timeout_seconds,
            max_line_size=settings.request_line_limit,
            max_field_size=settings.header_limit,
            max_headers=settings.headers_limit,
            lingering_time=0.0,  # a body is never read
            access_log_class=recorder,
            access_log=_log,
        )

    return make


def make_recorder(note: Note) -> type[AbstractAccessLogger]:
    """A class of the kind that aiohttp tells of every answer."""

    class Recorder(AbstractAccessLogger):
        def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
            note(request, response, time)

    return Recorder


def make_guard(authorize: Authorize, gone: Gone) -> Middleware:
    """A middleware that lets through only what is allowed, and what has a good link.

    Args:
        authorize: why a request may not have what it asks for, if so.
        gone: told of a request whose client left before the end, and how long it took.
    """

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        if resource is not None:
            request[ROUTE] = resource.canonical
        preflight = answer_preflight(request)
        if preflight is not None:
            return preflight
        if request.method in {"GET", "HEAD"}:
            if request.body_exists:
                refused = web.Response(status=413, text="a request here has no body\n")
                refused.force_close()  # the body is not read
                return refused
            refusal = authorize(request.path, request.query, time.time(), request.remote)
            if refusal is not None:
                raise web.HTTPForbidden(text=f"{refusal}\n")
        began = time.monotonic()
        try:
            return await handler(request)
        except (ConnectionError, asyncio.CancelledError):
            gone(request, time.monotonic() - began)
            raise

    return guard


@web.middleware
async def answer_failures(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Turn what no handler foresaw into a plain 500, and tell the operator, not the stranger."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except ConnectionError:
        raise  # the client went away: aiohttp knows what to do
    except Exception as error:
        _log.exception("request %s %s failed", request.method, request.path)
        raise web.HTTPInternalServerError(text="the server failed; its log says why\n") from error
