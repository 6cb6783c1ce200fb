"""The one shape of request that is answered without a detour: only that, whatever comes."""

import asyncio
import re
from dataclasses import dataclass
from unittest import mock

import pytest
from aiohttp.http_parser import HttpRequestParserPy
from hypothesis import given
from hypothesis import strategies as st

from vodserver.http.fast import _MOST_SHAPES, MAX_HEAD_BYTES, FastPath

SIZE = 1000
TARGET = "/titles/clock/content"


@dataclass(frozen=True)
class Film:
    id: str = "clock"
    film_bytes: int = SIZE


class Films:
    """One film, under a name that takes every letter that a name may have."""

    film = Film()

    def title(self, title_id):
        return self.film if title_id == self.film.id else None


def make():
    return FastPath(Films(), lambda title: {"Content-Type": "video/mp4", "ETag": '"e"'})


def head(
    *fields, start="GET /titles/clock/content HTTP/1.1", host="Host: a", asked="Range: bytes=5-9"
):
    return "\r\n".join([start, *filter(None, (host, *fields, asked)), "", ""]).encode("latin-1")


def strictly(data):
    """The same request as another parser sees it, and what of the data it left."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpRequestParserPy(mock.Mock(), loop, limit=2**16)
        messages, upgraded, tail = parser.feed_data(data)
    finally:
        loop.close()
    assert not upgraded
    assert not tail
    return messages


def check_agrees(data, request):
    """What was accepted is one request that another parser takes for the same."""
    (message, payload), *more = strictly(data)
    assert not more
    assert message.method == "GET"
    assert (message.version.major, message.version.minor) == (1, 1)
    assert message.path == request.target
    assert not message.should_close
    assert not message.chunked
    assert not message.upgrade
    assert payload.is_eof()
    assert [name for name in message.headers if len(message.headers.getall(name)) > 1] == []
    first, last = re.fullmatch(r"[Bb]ytes=(\d+)-(\d+)", message.headers["Range"]).groups()
    assert (request.start, request.end) == (int(first), min(int(last) + 1, SIZE))
    assert request.title.id == message.path.split("/")[2]
    assert request.raw == data
    names = {name.lower().encode() for name in message.headers}
    assert names == {*request.fields, b"range"}


GOOD = [
    head(),
    head("Connection: keep-alive", "Accept: */*", "User-Agent: a b (c)", "Cookie: x=\xff"),
    head("connection:Keep-Alive", "accept:", "X-Request-Id: \t 7 \t"),
    head(asked="range:bytes=0-0"),
    head(asked="Range:   Bytes=999-999999999999999"),
    head("Accept-Encoding: identity", host="HOST:\t[::1]:80"),
]


@pytest.mark.parametrize("data", GOOD)
def test_what_viewers_ask_all_day_is_taken(data):
    fast = make()
    for _ in range(2):  # the second time it is known
        request = fast.parse(data, 0.0)
        assert request is not None
        check_agrees(data, request)
    for length in range(len(data) + 1):
        assert fast.may_be(data[:length])


def test_the_answer_is_a_whole_head():
    request = make().parse(head(asked="Range: bytes=990-2000"), 784111777.9)
    assert request.head == (
        b"HTTP/1.1 206 Partial Content\r\nContent-Type: video/mp4\r\n"
        b'ETag: "e"\r\nContent-Length: 10\r\nContent-Range: bytes 990-999/1000\r\n'
        b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"
    )
    assert b"08:49:38" in make().parse(head(), 784111778.0).head


NEARLY = {
    "lower-case method": head(start="get /titles/clock/content HTTP/1.1"),
    "another method": head(start="HEAD /titles/clock/content HTTP/1.1"),
    "post": head(start="POST /titles/clock/content HTTP/1.1"),
    "absolute URI": head(start="GET http://a/titles/clock/content HTTP/1.1"),
    "query": head(start="GET /titles/clock/content? HTTP/1.1"),
    "fragment": head(start="GET /titles/clock/content#x HTTP/1.1"),
    "escape": head(start="GET /titles/cloc%6b/content HTTP/1.1"),
    "dots": head(start="GET /titles/../titles/clock/content HTTP/1.1"),
    "slash at the end": head(start="GET /titles/clock/content/ HTTP/1.1"),
    "upper-case title": head(start="GET /titles/CLOCK/content HTTP/1.1"),
    "no such title": head(start="GET /titles/clocks/content HTTP/1.1"),
    "empty title": head(start="GET /titles//content HTTP/1.1"),
    "long title": head(start=f"GET /titles/{'c' * 81}/content HTTP/1.1"),
    "stream": head(start="GET /titles/clock/stream HTTP/1.1"),
    "HTTP/1.0": head(start="GET /titles/clock/content HTTP/1.0"),
    "HTTP/1.10": head(start="GET /titles/clock/content HTTP/1.10"),
    "lower-case version": head(start="GET /titles/clock/content http/1.1"),
    "two spaces": head(start="GET  /titles/clock/content HTTP/1.1"),
    "space at the end of the line": head(start="GET /titles/clock/content HTTP/1.1 "),
    "tab": head(start="GET\t/titles/clock/content HTTP/1.1"),
    "empty line first": b"\r\n" + head(),
    "something after it": head() + b"G",
    "a second request": head() + head(),
    "the same twice": head("Accept: a", "accept: a"),
    "host twice": head("Host: a"),
    "range twice": head("Range: bytes=5-9"),
    "another range twice": head("Range: bytes=1-2"),
    "no host": head(host=""),
    "empty host": head(host="Host: "),
    "no fields": head(host="", asked=""),
    "folded": head("Accept: a\r\n b"),
    "folded range": head(asked="Range:\r\n bytes=5-9"),
    "bare LF": head().replace(b"\r\n", b"\n"),
    "one bare LF": head("Accept: a").replace(b"a\r\nR", b"a\nR"),
    "bare CR": head("Accept: a\rb"),
    "NUL": head("Accept: a\0b"),
    "DEL": head("Accept: a\x7fb"),
    "space before the colon": head("Accept : a"),
    "space before the name": head(" Accept: a"),
    "no colon": head("Accept"),
    "no name": head(": a"),
    "an empty body": head("Content-Length: 0"),
    "a body": head("Content-Length: 5"),
    "chunks": head("Transfer-Encoding: chunked"),
    "close": head("Connection: close"),
    "close and more": head("Connection: keep-alive, close"),
    "upgrade": head("Connection: Upgrade", "Upgrade: websocket"),
    "h2c": head("Upgrade: h2c"),
    "expectation": head("Expect: 100-continue"),
    "trailers": head("TE: trailers"),
    "If-Range": head('If-Range: "e"'),
    "If-Match": head("If-Match: *"),
    "If-None-Match": head('If-None-Match: "e"'),
    "If-Modified-Since": head("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    "If-Unmodified-Since": head("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    "authorization": head("Authorization: Basic YTpi"),
    "forwarded": head("X-Forwarded-For: 1.2.3.4"),
    "a field that nobody knows": head("X-Whatever: 1"),
    "no range": head(asked=""),
    "two ranges": head(asked="Range: bytes=0-1,3-4"),
    "suffix": head(asked="Range: bytes=-5"),
    "open end": head(asked="Range: bytes=5-"),
    "backwards": head(asked="Range: bytes=9-5"),
    "beyond the end": head(asked="Range: bytes=1000-1001"),
    "spaces in it": head(asked="Range: bytes= 5-9"),
    "space after it": head(asked="Range: bytes=5-9 "),
    "tab before it": head(asked="Range:\tbytes=5-9"),
    "a sign": head(asked="Range: bytes=+5-9"),
    "sixteen digits": head(asked="Range: bytes=0000000000000005-9"),
    "another unit": head(asked="Range: seconds=5-9"),
    "other digits": head(asked="Range: bytes=\xb2-9"),
    "range in a value": head("Accept: Range: bytes=5-9", asked=""),
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_so_is_left_to_the_long_way(name):
    fast = make()
    assert fast.parse(NEARLY[name], 0.0) is None
    for good in GOOD:  # whatever was learned before
        assert fast.parse(good, 0.0) is not None
    assert fast.parse(NEARLY[name], 0.0) is None


def test_a_request_that_is_too_long_cannot_be_one():
    assert not make().may_be(head("Cookie: " + "x" * MAX_HEAD_BYTES))
    assert not make().may_be(b"HEAD /titles/")
    assert not make().may_be(b"GET /title/")


_LINES = st.sampled_from(
    [line for data in (*GOOD, *NEARLY.values()) for line in data.split(b"\r\n")[:4]]
    + [b"", b"\r", b"\n", b"Range: bytes=1-2", b"Accept: 1", b"Host: b"]
)
_MIXES = st.lists(_LINES, max_size=6).map(lambda lines: b"\r\n".join([*lines, b"", b""]))


@st.composite
def _edits(draw):
    """A good request with a few bytes changed, put in or taken out."""
    data = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@given(data=st.one_of(st.binary(max_size=300), _MIXES, _edits()))
def test_whatever_comes_it_never_fails_and_agrees_with_another_parser(data):
    fast = make()
    for good in GOOD:
        fast.parse(good, 0.0)
    request = fast.parse(data, 0.0)
    if request is not None:
        check_agrees(data, request)
    assert make().parse(data, 0.0) == request, "what was learned from others changes nothing"


@given(before=_edits(), data=_edits())
def test_what_a_client_asked_before_changes_nothing(before, data):
    fast = make()
    previous = fast.parse(before, 0.0) or fast.parse(GOOD[0], 0.0)
    assert fast.parse(data, 0.0, previous) == make().parse(data, 0.0)


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_so_is_also_left_after_a_good_one(name):
    for good in GOOD:
        fast = make()
        assert fast.parse(NEARLY[name], 0.0, fast.parse(good, 0.0)) is None


def test_a_client_may_add_a_field_between_its_requests():
    fast = make()
    first = fast.parse(head(), 0.0)
    longer = head()[:-2] + b"Accept: 5-9\r\n\r\n"
    second = fast.parse(longer, 0.0, first)
    assert second is not None
    assert second == make().parse(longer, 0.0)


@given(first=st.integers(0, 10**15 - 1), last=st.integers(0, 10**15 - 1))
def test_a_known_shape_is_answered_as_a_new_one_is(first, last):
    fast = make()
    fast.parse(head(), 0.0)
    data = head(asked=f"Range: bytes={first}-{last}")
    assert fast.parse(data, 0.0) == make().parse(data, 0.0)
    assert (fast.parse(data, 0.0) is not None) == (first <= last and first < SIZE)


def test_what_it_remembers_of_strangers_is_bounded():
    fast = make()
    for number in range(_MOST_SHAPES + 10):
        assert fast.parse(head(f"Cookie: {number}"), 0.0) is not None
    assert len(fast._shapes) <= _MOST_SHAPES


def test_the_date_is_that_of_each_answer():
    fast = make()
    dates = [fast.parse(head(), second).head.split(b"Date: ")[1][17:25] for second in (0, 0.9, 1)]
    assert dates == [b"00:00:00", b"00:00:00", b"00:00:01"]


def test_a_film_that_changed_has_a_new_head():
    films = Films()
    fast = FastPath(films, lambda title: {"ETag": f'"{title.film_bytes}"'})
    assert b'"1000"' in fast.parse(head(), 0.0).head
    films.film = Film(film_bytes=8)
    assert b'"8"' in fast.parse(head(), 0.0).head
    films.film = Film(id="other")
    assert fast.parse(head(), 0.0) is None
