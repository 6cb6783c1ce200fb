"""Routes that serve the page: `/` and the files it is made of, under `/app/`.

The page is data of this package: HTML, one style sheet, ECMAScript modules and an icon. It asks
nobody but its own server, and its security policy holds it to that.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from aiohttp import hdrs, web

__all__ = ["PAGE_FILES", "add_page"]

_INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_OWN: Final = ("script", "style", "img", "media", "connect")
_NOBODY: Final = ("default-src", "base-uri", "form-action", "frame-ancestors")
_POLICY: Final = "; ".join(
    [f"{name} 'none'" for name in _NOBODY] + [f"{name}-src 'self'" for name in _OWN]
)
_HEADERS: Final = {
    # Always asked for again, answered with 304: a page must fit the daemon that serves it.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page.

    Attributes:
        content: its bytes.
        content_type: its media type.
        tag: a strong entity tag, without quotes.
    """

    content: bytes
    content_type: str
    tag: str


def _load() -> Mapping[str, PageFile]:
    found = {}
    for entry in files("toast.web").joinpath("static").iterdir():
        kind = _TYPES.get(entry.name.rpartition(".")[2])
        if kind is None:
            continue  # not ours: an editor's backup, say
        content = entry.read_bytes()
        found[entry.name] = PageFile(content, kind, hashlib.sha256(content).hexdigest()[:32])
    return found


PAGE_FILES: Final = _load()
"""Every file of the page by its name: a fixed table, so no request reaches the file system."""


def add_page(app: web.Application) -> None:
    """Serve the page at `/` and its files under `/app/`.

    Args:
        app: an application whose API is under `/api/v1`; who may ask is its own affair.
    """
    app.router.add_get("/", _index)
    app.router.add_get("/app/{name}", _file)


async def _index(request: web.Request) -> web.Response:
    return _answer(request, PAGE_FILES[_INDEX])


async def _file(request: web.Request) -> web.Response:
    file = PAGE_FILES.get(request.match_info["name"])
    if file is None:
        return web.Response(status=404, text="the page has no such file\n", headers=_HEADERS)
    return _answer(request, file)


def _answer(request: web.Request, file: PageFile) -> web.Response:
    headers = _HEADERS | {hdrs.ETAG: f'"{file.tag}"'}
    asked = request.if_none_match or ()
    if any(tag.value in {file.tag, "*"} for tag in asked):
        return web.Response(status=304, headers=headers)
    return web.Response(
        body=file.content, content_type=file.content_type, charset="utf-8", headers=headers
    )
