"""A store that several trackers share: each writes its announces there, and reads all others'.

It is one stream of a Redis or Valkey server. A tracker that starts reads what was written within
the time after which a silent peer is forgotten, and so knows all swarms; older entries are cut off.
While the store cannot be reached each tracker goes on alone, and keeps what it has to tell.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from tracker.errors import TrackerError

__all__ = ["SharedStore", "open_store"]

_LOG: Final = logging.getLogger("tracker")

_STREAM: Final = "toast:announces"
_FIELD: Final = b"news"
_MOST_UNSENT: Final = 256
_READ_AT_ONCE: Final = 64
_BLOCK_MS: Final = 1000
_RETRY_SECONDS: Final = 1.0
_TIMEOUT_SECONDS: Final = 5.0
_WHERE: Final = "redis://HOST:PORT/NUMBER"


class SharedStore:
    """A tracker's place at the store.

    Args:
        client: of redis-py, asynchronous.
        url: of the store, for what people read.
        keep_seconds: how long an announce counts.
        heard: called with each message, our own included.

    Attributes:
        up: whether the store can be reached.
        dropped: messages that it was down too long for.
    """

    def __init__(
        self, client: Any, url: str, keep_seconds: float, heard: Callable[[bytes], None]
    ) -> None:
        self.up = False
        self.dropped = 0
        self._client = client
        self._url = url
        self._keep_ms = max(1, round(keep_seconds * 1000))
        self._heard = heard
        self._unsent: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._read_until: bytes | str | None = None

    def send(self, news: Iterable[bytes]) -> None:
        """Tell the others, as soon as the store can be reached."""
        for message in news:
            if len(self._unsent) >= _MOST_UNSENT:
                self._unsent.popleft()
                self.dropped += 1
            self._unsent.append(message)
        if self._unsent:
            self._more.set()

    async def connect(self) -> None:
        """Read what is there. To be called once, before anybody is answered.

        Raises:
            TrackerError: it cannot be reached.
        """
        try:
            await self._begin()
            while await self._read(block=False):
                pass
        except self._errors as error:
            raise TrackerError(
                f"the shared store {self._url} cannot be used: {_reason(error)}; "
                f"--store takes {_WHERE}"
            ) from error
        self.up = True

    def work(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Reading and writing, both until cancelled."""
        return self._keep(self._read_on), self._keep(self._write)

    async def close(self) -> None:
        """Let go of it."""
        await self._client.aclose()

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError  # noqa: PLC0415 - an extra, not for everyone

        return (RedisError, OSError, TimeoutError)

    async def _keep(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await work()
            except self._errors as error:
                if self.up:
                    self.up = False
                    _LOG.warning("the shared store is away, I go on alone: %s", _reason(error))
                await asyncio.sleep(_RETRY_SECONDS)

    def _reached(self) -> None:
        if not self.up:
            self.up = True
            _LOG.warning("the shared store is there again")

    async def _begin(self) -> None:
        seconds, microseconds = await self._client.time()
        now_ms = int(seconds) * 1000 + int(microseconds) // 1000
        self._read_until = f"{max(0, now_ms - self._keep_ms)}-0"

    async def _read_on(self) -> None:
        while True:
            await self._read(block=True)
            self._reached()

    async def _read(self, *, block: bool) -> int:
        if self._read_until is None:
            await self._begin()
        answer = await self._client.xread(
            {_STREAM: self._read_until},
            count=_READ_AT_ONCE,
            block=_BLOCK_MS if block else None,
        )
        entries = answer[0][1] if answer else []
        for entry, fields in entries:
            self._read_until = entry
            message = fields.get(_FIELD)
            if message is not None:
                self._heard(message)
            await asyncio.sleep(0)  # answer in between
        return len(entries)

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            while self._unsent:
                message = self._unsent[0]
                seconds, microseconds = await self._client.time()
                oldest = int(seconds) * 1000 + int(microseconds) // 1000 - self._keep_ms
                await self._client.xadd(
                    _STREAM, {_FIELD: message}, minid=max(0, oldest), approximate=True
                )
                if self._unsent and self._unsent[0] is message:  # not dropped meanwhile
                    self._unsent.popleft()
                self._reached()
            self._more.clear()


def open_store(url: str, keep_seconds: float, heard: Callable[[bytes], None]) -> SharedStore:
    """A tracker's place at the store at a URL; nothing is asked of it yet.

    Args:
        url: `redis://` or `valkey://`, with an `s` behind that for TLS, or `unix://`.
        keep_seconds: how long an announce counts.
        heard: called with each message.

    Raises:
        TrackerError: it is no such URL, or the client of such stores is not installed.
    """
    try:
        from redis import asyncio as redis  # noqa: PLC0415 - an extra, not for everyone
    except ImportError:
        raise TrackerError(
            "a shared store needs the redis client: pip install 'toast-vod[store]'"
        ) from None
    known = url.replace("valkeys://", "rediss://", 1).replace("valkey://", "redis://", 1)
    try:
        client = redis.Redis.from_url(
            known,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            socket_timeout=_TIMEOUT_SECONDS,
            protocol=2,
        )
    except ValueError as error:
        reason = f"{_shown(url)} is no store ({error})"
        raise TrackerError(f"{reason}: --store takes {_WHERE}") from error
    return SharedStore(client, _shown(url), keep_seconds, heard)


def _shown(url: str) -> str:
    """A URL as people may read it: without its password."""
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
