"""Fields that every answer carries, and who may read it."""

from typing import Final

from aiohttp import hdrs, web

__all__ = ["COMMON_FIELDS", "SERVER_NAME", "add_common_fields", "answer_preflight"]

SERVER_NAME: Final = "vodserver"
"""Without a version: that would only help those who look for an old one."""

COMMON_FIELDS: Final = {
    "Server": SERVER_NAME,
    # A web player of another origin may read films and what describes them. Nothing here depends
    # on who asks by cookie or password, and nothing can be changed over HTTP.
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": (
        "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified, Retry-After"
    ),
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer, on whatever path it is made."""

_PREFLIGHT_FIELDS: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": (
        "Range, If-Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since"
    ),
    "Access-Control-Max-Age": "86400",
}


async def add_common_fields(_: web.Request, response: web.StreamResponse) -> None:
    """Add them to an answer that is about to go out; a signal of aiohttp's."""
    for name, value in COMMON_FIELDS.items():
        response.headers[name] = value


def answer_preflight(request: web.Request) -> web.Response | None:
    """The answer to a browser that asks what a page of another origin may ask for, or None."""
    if (
        request.method == "OPTIONS"
        and hdrs.ORIGIN in request.headers
        and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
    ):
        return web.Response(status=204, headers=_PREFLIGHT_FIELDS)
    return None
