import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.errors import HttpError
from tracker.http_codec import HttpRequest, encode_response, parse_request


@pytest.mark.parametrize(
    ("head", "request_"),
    [
        (b"GET / HTTP/1.1", HttpRequest(b"/", b"", True)),
        (b"GET /a?b=c&d HTTP/1.1\r\nHost: t", HttpRequest(b"/a", b"b=c&d", True)),
        (b"GET /a?b?c HTTP/1.1", HttpRequest(b"/a", b"b?c", True)),
        (b"GET / HTTP/1.1\r\nConnection: Close", HttpRequest(b"/", b"", False)),
        (b"GET / HTTP/1.0\r\nHost: t", HttpRequest(b"/", b"", False)),
        (b"GET / HTTP/1.0\r\nconnection: Keep-Alive", HttpRequest(b"/", b"", True)),
        (b"GET http://t:1/a?b HTTP/1.1", HttpRequest(b"/a", b"b", True)),
        (b"GET /\xff HTTP/1.1", HttpRequest(b"/\xff", b"", True)),
        (b"GET / HTTP/1.1\r\nContent-Length: 0", HttpRequest(b"/", b"", True)),
    ],
)
def test_requests(head, request_):
    """RFC 9112, sections 3 and 9.3."""
    assert parse_request(head) == request_


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/1.1 x", 400),
        (b"GET /\n HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nx: \0", 400),
        (b"GET / SPDY/1", 400),
        (b"GET / HTTP/2.0", 505),
        (b"POST / HTTP/1.1", 405),
        (b"HEAD / HTTP/1.1", 405),
        (b"GET / HTTP/1.1\r\nContent-Length: 5", 413),
        (b"GET / HTTP/1.1\r\nContent-Length : 5", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked", 413),
    ],
)
def test_what_is_no_plain_get_is_refused(head, status):
    with pytest.raises(HttpError) as refusal:
        parse_request(head)
    assert refusal.value.status == status


@given(head=st.binary(max_size=200))
def test_no_head_does_worse_than_being_refused(head):
    for text in (head, b"GET " + head, b"GET / HTTP/1.1\r\n" + head):
        with contextlib.suppress(HttpError):
            parse_request(text)


def test_an_answer_says_how_long_it_is_and_whether_it_is_the_last():
    answer = encode_response(
        404, b"no", content_type=b"text/plain", keep_open=False, date=b"Thu, 01 Jan 1970"
    )
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert (lines[0], body) == (b"HTTP/1.1 404 Not Found", b"no")
    assert {b"Content-Length: 2", b"Connection: close", b"Date: Thu, 01 Jan 1970"} < set(lines)
