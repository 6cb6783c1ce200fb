"""The request that viewers make all day, answered without a detour: one range of a film.

Exactly one shape is taken: GET, HTTP/1.1, a film's content, one satisfiable range with both ends,
no condition, no body, no field twice, nothing that changes the connection. All else, and whatever
is not plainly that, is left to aiohttp, which then has the connection for good. The answer is the
one that the long way gives, field by field; a test compares them.
"""

import re
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Final, NamedTuple

from vodserver.http.sender import FilmSource
from vodserver.store import Title

__all__ = ["MAX_HEAD_BYTES", "FastPath", "FastRequest"]

MAX_HEAD_BYTES: Final = 4096
"""A longer request is not of this shape."""

_START: Final = b"GET /titles/"
_REQUEST = re.compile(
    rb"GET (/titles/([a-z0-9-]{1,80})/content) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)+)\r\n"
)
_RANGE = re.compile(rb"\r\n[Rr]ange: *[Bb]ytes=(\d{1,15})-(\d{1,15})\r\n")
# Fields that may stand in such a request without a meaning for its answer.
_IDLE: Final = frozenset(
    (
        *(b"host", b"user-agent", b"accept", b"accept-language", b"accept-encoding", b"referer"),
        *(b"origin", b"dnt", b"priority", b"pragma", b"cache-control", b"icy-metadata"),
        *(b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site", b"sec-ch-ua"),
        *(b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"cookie", b"save-data", b"x-request-id"),
    )
)


_MOST_SHAPES: Final = 512
"""Strangers write them: so many, of the longest, take a few megabytes."""

_Shape = tuple[str, str, dict[bytes, bytes]]


class FastRequest(NamedTuple):
    """A request of the one shape, and the head of its answer.

    Attributes:
        title: which film.
        start: first byte.
        end: one past the last.
        head: status line and fields.
        raw: the request, as it came.
        target: the request's path.
        fields: the request's fields but for the range, for the log.
    """

    title: Title
    start: int
    end: int
    head: bytes
    raw: bytes
    target: str
    fields: Mapping[bytes, bytes]


class FastPath:
    """Recognises that request.

    Args:
        source: where the films are.
        fields: the fields of every answer with a film's content, but for those that name the
            range and the date.
    """

    def __init__(self, source: FilmSource, fields: Callable[[Title], Mapping[str, str]]) -> None:
        self._source = source
        self._fields = fields
        self._heads: dict[str, tuple[Title, bytes]] = {}
        # A client's requests differ in their ranges only: what was found good once need not be
        # taken apart again.
        self._shapes: dict[tuple[bytes, bytes], _Shape] = {}

    def may_be(self, data: bytes | bytearray) -> bool:
        """Whether what has come so far may be the beginning of such a request."""
        return len(data) <= MAX_HEAD_BYTES and (
            data.startswith(_START) if len(data) >= len(_START) else _START.startswith(data)
        )

    def parse(self, head: bytes, now: float) -> FastRequest | None:
        """The request, if it is of the shape.

        Args:
            head: a request up to its empty line.
            now: unix seconds.
        """
        asked = _RANGE.search(head)
        if asked is None:
            return None
        shape = head[: asked.start(1)], head[asked.end(2) :]
        known = self._shapes.get(shape)
        if known is None:
            known = _shape_of(head)
            if known is None:
                return None
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[shape] = known
        title_id, target, fields = known
        title = self._source.title(title_id)
        start, last = int(asked[1]), int(asked[2])
        if title is None or not start <= last or start >= title.film_bytes:
            return None
        end = min(last + 1, title.film_bytes)
        answer = self._head(title, start, end, now)
        return FastRequest(title, start, end, answer, head, target, fields)

    def _head(self, title: Title, start: int, end: int, now: float) -> bytes:
        known = self._heads.get(title.id)
        if known is None or known[0] is not title:
            lines = [f"{name}: {value}" for name, value in self._fields(title).items()]
            fixed = "\r\n".join(lines).encode("latin-1")
            known = self._heads[title.id] = title, fixed
        return (
            b"HTTP/1.1 206 Partial Content\r\n%b\r\n"
            b"Content-Length: %d\r\nContent-Range: bytes %d-%d/%d\r\nDate: %b\r\n\r\n"
            % (known[1], end - start, start, end - 1, title.film_bytes, _date(int(now)))
        )


def _shape_of(head: bytes) -> _Shape | None:
    """Film, path and fields of a request; None if it is not of the shape."""
    match = _REQUEST.fullmatch(head)
    fields = None if match is None else _plain_fields(match[3])
    if match is None or fields is None:
        return None
    return match[2].decode(), match[1].decode(), fields


def _plain_fields(lines: bytes) -> dict[bytes, bytes] | None:
    """The fields of a request by lower-case name; None if any of them needs thought."""
    fields: dict[bytes, bytes] = {}
    for line in lines.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        keeps = name == b"connection" and value.lower() == b"keep-alive"
        if name in fields or not (keeps or name == b"range" or name in _IDLE):
            return None
        fields[name] = value
    fields.pop(b"range", None)  # the next request of the same shape has another one
    return fields if fields.get(b"host") else None


_last_date: tuple[int, bytes] = (0, b"")


def _date(second: int) -> bytes:
    """The Date field's value; the same for a whole second."""
    global _last_date  # noqa: PLW0603 - one value that anybody may renew
    if _last_date[0] != second:
        _last_date = second, formatdate(second, usegmt=True).encode()
    return _last_date[1]
