"""Films for the gateway: whole ones, and ones that arrive while they are read."""

import asyncio
import contextlib

import aiohttp

from toast.common.errors import ToastError
from toast.gateway import Gateway, GatewaySettings

FILM = bytes(range(256)) * 800


class FileSource:
    """A whole film on disk, given out in chunks of an awkward size."""

    film_name = "a film & more.mp4"
    etag = '"film-1"'
    content_type = "video/mp4"
    film_id = "0123456789abcdef0123456789abcdef01234567"
    title = "A film"
    duration_seconds = 90.4
    last_modified = None
    picture = None

    def __init__(self, data, chunk=10_007):
        self.data, self.chunk = data, chunk
        self.film_bytes = len(data)
        self.asked = []
        self.subtitles = []
        self.left = 0

    async def read(self, start, end):
        self.asked.append((start, end))
        try:
            for at in range(start, end, self.chunk):
                await self.arrived(min(at + self.chunk, end))
                yield self.data[at : min(at + self.chunk, end)]
        finally:
            self.left += 1

    async def arrived(self, end):
        """Wait until the film is there up to `end`."""

    async def poster(self):
        return self.picture


class ArrivingSource(FileSource):
    """A film of which nothing is there until `arrive` says so."""

    def __init__(self, data, chunk=10_007):
        super().__init__(data, chunk)
        self.there = 0
        self.news = asyncio.Condition()
        self.waits = asyncio.Event()
        self.gone = asyncio.Event()
        self.fails = False

    async def arrive(self, end, *, fails=False):
        async with self.news:
            self.there, self.fails = end, fails
            self.news.notify_all()

    async def arrived(self, end):
        try:
            async with self.news:
                while self.there < end:
                    if self.fails:
                        raise ToastError("no peer and no server has this part: try again")
                    self.waits.set()
                    await self.news.wait()
        except asyncio.CancelledError:
            self.gone.set()
            raise


@contextlib.asynccontextmanager
async def opened(source, **settings):
    async with (
        Gateway(source, settings=GatewaySettings(**settings)) as gateway,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as client,
    ):
        yield gateway, client
