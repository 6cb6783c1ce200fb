"""Framing of `multipart/byteranges` (RFC 9110, section 14.6): what stands between the slices."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Framing", "Part"]

# RFC 2046, 5.1.1 allows more characters, but those would have to be quoted in Content-Type.
_BOUNDARY = re.compile(r"[0-9A-Za-z'_+.-]{1,70}", re.ASCII)
_CRLF: Final = "\r\n"


@dataclass(frozen=True, slots=True)
class Part:
    """One slice to send.

    Attributes:
        start: its first byte of the film.
        end: one past its last byte.
        head: what to send before it; empty where the answer is not multipart.
    """

    start: int
    end: int
    head: bytes = b""


class Framing:
    """The delimiters and part headers of one representation's multipart answers.

    Without a boundary given, it is the digest of the entity tag. A tag that is itself a digest of
    the content (an info-hash is) makes that safe against contents made to hold the delimiter: they
    would have to hold a digest of themselves.

    Args:
        length: bytes of the representation.
        etag: its entity tag.
        content_type: what each part says that it is, or None to say nothing.
        boundary: 1 to 70 characters that occur nowhere in the content after a line break and two
            hyphens; by default derived from `etag`.

    Raises:
        ValueError: the boundary holds what a boundary must not hold.
    """

    def __init__(
        self, *, length: int, etag: str, content_type: str | None, boundary: str | None = None
    ) -> None:
        if boundary is None:
            boundary = hashlib.blake2b(etag.encode(), digest_size=16).hexdigest()
        if _BOUNDARY.fullmatch(boundary) is None:
            raise ValueError(f"a boundary is 1 to 70 letters, digits or '_+.-: not {boundary!r}")
        self._length = length
        self._type = "" if content_type is None else f"Content-Type: {content_type}{_CRLF}"
        self._delimiter = f"{_CRLF}--{boundary}"
        self.content_type = f"multipart/byteranges; boundary={boundary}"
        """Content-Type of the whole answer."""
        self.tail = f"{self._delimiter}--{_CRLF}".encode()
        """What ends it, after the last slice."""
        # No part's head is longer than this: what it saves to bridge a gap (15.3.7.2).
        self.overhead = len(self._head(length, length))
        """Bytes that a part costs beside its slice, at most."""

    def parts(self, slices: list[tuple[int, int]]) -> tuple[Part, ...]:
        """The parts for slices [start, end) of the film, in the order given."""
        heads = [self._head(start, end - 1) for start, end in slices]
        heads[0] = heads[0].removeprefix(_CRLF)  # there is nothing yet whose line could end
        return tuple(
            Part(start, end, head.encode())
            for (start, end), head in zip(slices, heads, strict=True)
        )

    def _head(self, first: int, last: int) -> str:
        span = f"Content-Range: bytes {first}-{last}/{self._length}"
        return f"{self._delimiter}{_CRLF}{self._type}{span}{_CRLF}{_CRLF}"
