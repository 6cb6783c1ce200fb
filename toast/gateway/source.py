"""What the gateway asks of whoever has the film."""

from collections.abc import AsyncIterator, Awaitable
from typing import Protocol

__all__ = ["ByteStream", "FilmSource"]


class ByteStream(Protocol):
    """Verified bytes of the film, in order; every async generator of bytes is one."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def __anext__(self) -> Awaitable[bytes]: ...

    def aclose(self) -> Awaitable[object]:
        """Say that the reader left: nothing more will be asked of this stream."""


class FilmSource(Protocol):
    """A film that is there in part, and grows."""

    @property
    def film_name(self) -> str:
        """Its file name, without a folder."""

    @property
    def film_bytes(self) -> int:
        """Its size in bytes, known from the start."""

    @property
    def etag(self) -> str:
        """A strong entity tag with its quotes: equal tags mean equal bytes (RFC 9110, 8.8.3)."""

    @property
    def content_type(self) -> str:
        """Its media type, such as video/mp4."""

    def read(self, start: int, end: int) -> ByteStream:
        """Bytes [start, end) of the film, in chunks of any size.

        The stream waits for bytes that are not there yet, and ends after byte `end - 1`. It raises
        a ToastError when the wait is in vain: the player is told its message.
        """
