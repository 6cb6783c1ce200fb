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


class _Shape(NamedTuple):
    """What the requests of one client have in common.

    Attributes:
        before: what comes before the first byte's number.
        after: what comes after the last byte's number.
        title_id: the film's.
        target: the path.
        fields: the fields but for the range, by lower-case name.
    """

    before: bytes
    after: bytes
    title_id: str
    target: str
    fields: Mapping[bytes, bytes]


class FastRequest(NamedTuple):
    """A request of the one shape, and the head of its answer.

    Attributes:
        title: which film.
        start: first byte.
        end: one past the last.
        head: status line and fields.
        raw: the request, as it came.
        shape: what the client's next request will have in common with this one.
    """

    title: Title
    start: int
    end: int
    head: bytes
    raw: bytes
    shape: _Shape

    @property
    def target(self) -> str:
        """The request's path."""
        return self.shape.target

    @property
    def fields(self) -> Mapping[bytes, bytes]:
        """The request's fields but for the range, for the log."""
        return self.shape.fields


class _Head(NamedTuple):
    """What the answers with a film's content have in common within a second.

    Attributes:
        title: which film.
        second: unix time.
        head: with gaps for the range's size, first and last byte.
    """

    title: Title
    second: int
    head: bytes


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
        self._heads: dict[str, _Head] = {}
        # A client's requests differ in their ranges only: what was found good once need not be
        # taken apart again.
        self._shapes: dict[tuple[bytes, bytes], _Shape] = {}

    def may_be(self, data: bytes | bytearray) -> bool:
        """Whether what has come so far may be the beginning of such a request."""
        return len(data) <= MAX_HEAD_BYTES and (
            data.startswith(_START) if len(data) >= len(_START) else _START.startswith(data)
        )

    def parse(
        self, head: bytes, now: float, previous: FastRequest | None = None
    ) -> FastRequest | None:
        """The request, if it is of the shape.

        Args:
            head: a request up to its empty line.
            now: unix seconds.
            previous: what the same client asked before: most likely all but the range is the same.
        """
        shape = None if previous is None else previous.shape
        numbers = None if shape is None else _numbers(head, shape)
        if shape is None or numbers is None:
            shape = self._shape(head)
            numbers = None if shape is None else _numbers(head, shape)
            if shape is None or numbers is None:
                return None
        title, (start, end) = self._source.title(shape.title_id), numbers
        if title is None or not start < end or start >= title.film_bytes:
            return None
        end = min(end, title.film_bytes)
        answer = self._head(title, start, end, int(now))
        # Its own constructor takes twice as long.
        return tuple.__new__(FastRequest, (title, start, end, answer, head, shape))

    def _shape(self, head: bytes) -> _Shape | None:
        """The shape of a request, if it is of the one that is taken here."""
        asked = _RANGE.search(head)
        if asked is None:
            return None
        key = head[: asked.start(1)], head[asked.end(2) :]
        known = self._shapes.get(key)
        if known is None:
            known = _shape_of(head, *key)
            if known is None:
                return None
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = known
        return known

    def _head(self, title: Title, start: int, end: int, second: int) -> bytes:
        known = self._heads.get(title.id)
        if known is None or known.second != second or known.title is not title:
            lines = [f"{name}: {value}" for name, value in self._fields(title).items()]
            fields = "\r\n".join(["HTTP/1.1 206 Partial Content", *lines, ""]).encode("latin-1")
            date = formatdate(second, usegmt=True)
            after = f"/{title.film_bytes}\r\nDate: {date}\r\n\r\n".encode()
            head = (
                fields.replace(b"%", b"%%")
                + b"Content-Length: %d\r\nContent-Range: bytes %d-%d"
                + after
            )
            known = self._heads[title.id] = _Head(title, second, head)
        return known.head % (end - start, start, end - 1)


def _numbers(head: bytes, shape: _Shape) -> tuple[int, int] | None:
    """First byte and one past the last that a request of this shape asks for; None if it is not."""
    before, after = shape.before, shape.after
    if not (head.startswith(before) and head.endswith(after)):
        return None
    first, _, last = head[len(before) : -len(after)].partition(b"-")
    # Without this, what comes after the range might be longer than what the shape ends with.
    if not (first.isdigit() and last.isdigit() and len(first) < 16 and len(last) < 16):
        return None
    return int(first), int(last) + 1


def _shape_of(head: bytes, before: bytes, after: bytes) -> _Shape | None:
    """The shape of a request, with what comes before and after its range's numbers, if any."""
    match = _REQUEST.fullmatch(head)
    fields = None if match is None else _plain_fields(match[3])
    if match is None or fields is None:
        return None
    return _Shape(before, after, match[2].decode(), match[1].decode(), fields)


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
