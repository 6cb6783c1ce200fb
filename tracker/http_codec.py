"""As much of HTTP/1.1 as a tracker needs: request heads in, whole answers out. Pure.

Source: RFC 9112. Only GET, and no bodies: a request that announces one is refused and its
connection closed, so that nothing behind it can be taken for another request. Stated leniency:
`Host` may be missing, and bytes above 127 may stand unescaped in the target (clients do that).
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from tracker.errors import HttpError

__all__ = ["HttpRequest", "encode_response", "parse_request"]

_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}


@dataclass(slots=True)
class HttpRequest:
    """One request.

    Attributes:
        path: up to the `?`, still percent-encoded.
        query: behind it.
        keep_open: whether the client wants to ask more on this connection.
    """

    path: bytes
    query: bytes
    keep_open: bool


def parse_request(head: bytes) -> HttpRequest:
    """Read a request's head, without the empty line at its end.

    Raises:
        HttpError: it is no GET of HTTP/1.x, or has a body.
    """
    line, _, fields = head.partition(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3 or b"\n" in line or b"\0" in head:
        raise HttpError(400)
    method, target, version = words
    if version not in {b"HTTP/1.1", b"HTTP/1.0"}:
        raise HttpError(505 if version.startswith(b"HTTP/") else 400)
    if method != b"GET":
        raise HttpError(405)
    keep_open = _keeps_open(fields.lower(), version)
    if target.startswith(b"http://"):  # the absolute form, as to a proxy
        target = b"/" + target[7:].partition(b"/")[2]
    path, _, query = target.partition(b"?")
    return HttpRequest(path, query, keep_open)


def _keeps_open(fields: bytes, version: bytes) -> bool:
    keep_open = version == b"HTTP/1.1"
    for field in fields.split(b"\r\n"):
        name, _, value = field.partition(b":")
        if name == b"connection":
            keep_open = b"close" not in value and (keep_open or b"keep-alive" in value)
        elif name.strip() in {b"content-length", b"transfer-encoding"} and value.strip() != b"0":
            raise HttpError(413)
    return keep_open


def encode_response(
    status: int, body: bytes, *, content_type: bytes, keep_open: bool, date: bytes
) -> bytes:
    """A whole answer; `date` as RFC 9110 section 5.6.7 writes it."""
    return (
        b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: %b\r\n"
        b"Date: %b\r\nServer: toast-tracker\r\n\r\n%b"
    ) % (
        status,
        _PHRASES[status],
        content_type,
        len(body),
        b"keep-alive" if keep_open else b"close",
        date,
        body,
    )
