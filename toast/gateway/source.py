"""What the gateway asks of whoever has the films."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Protocol

__all__ = ["ByteStream", "FilmSource", "Films", "OneFilm", "Subtitle"]


class ByteStream(Protocol):
    """Verified bytes of the film, in order; every async generator of bytes is one."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def __anext__(self) -> Awaitable[bytes]: ...

    def aclose(self) -> Awaitable[object]:
        """Say that the reader left: nothing more will be asked of this stream."""


class Subtitle(Protocol):
    """Subtitles of a film, in a file of their own."""

    @property
    def label(self) -> str:
        """What a person chooses it by, such as "English"."""

    @property
    def language(self) -> str | None:
        """Its language as a tag of BCP 47, such as "en"; None if nothing says it."""

    @property
    def file_name(self) -> str:
        """Its file name, without a folder; the ending says whether it is SRT or WebVTT."""

    async def load(self) -> bytes:
        """The file as it is.

        Raises:
            ToastError: it cannot be read, or is larger than subtitles are.
        """


class FilmSource(Protocol):
    """A film that is there in part, and grows."""

    @property
    def film_id(self) -> str:
        """Its info-hash, 40 hexadecimal digits: what its URLs call it."""

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
    def last_modified(self) -> float | None:
        """Since when it has been what it is (Unix seconds); None if nobody knows."""

    @property
    def content_type(self) -> str:
        """Its media type, such as video/mp4."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def duration_seconds(self) -> float | None:
        """How long it is; None while that is not known."""

    @property
    def subtitles(self) -> Sequence[Subtitle]:
        """Its subtitles. A number that was given to one is never given to another."""

    def read(self, start: int, end: int) -> ByteStream:
        """Bytes [start, end) of the film, in chunks of any size.

        The stream waits for bytes that are not there yet, and ends after byte `end - 1`. It raises
        a ToastError when the wait is in vain: the player is told its message.
        """

    async def poster(self) -> bytes | None:
        """A picture of the film, as JPEG; None if there is none (yet)."""


class Films(Protocol):
    """The films that there are."""

    def get(self, film_id: str, /) -> FilmSource | None:
        """The film of this info-hash (40 hexadecimal digits in small letters), or None."""


class OneFilm:
    """A house with one film.

    Args:
        source: that film.
    """

    def __init__(self, source: FilmSource) -> None:
        self._source = source

    def get(self, film_id: str, /) -> FilmSource | None:
        """The film, if it is this one."""
        return self._source if film_id == self._source.film_id else None
