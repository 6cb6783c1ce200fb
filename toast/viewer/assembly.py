"""From a source to a viewer of it, with its clients of server and trackers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import numpy as np

from toast.common import blockhashes
from toast.origin import OriginClient, OriginSettings, SpanClient, Stretch
from toast.policy.budget import OriginBudget
from toast.policy.neighbours import create_neighbours
from toast.swarm import SessionSettings, SwarmSession, TorrentFile, file_url
from toast.viewer.errors import ViewerError
from toast.viewer.neighbourhood import Neighbourhood
from toast.viewer.settings import ViewerSettings
from toast.viewer.source import Source
from toast.viewer.viewer import Viewer

__all__ = ["assemble_viewer", "viewer_http"]

_MOST_CONNECTIONS = 48


@asynccontextmanager
async def viewer_http(settings: SessionSettings) -> AsyncIterator[aiohttp.ClientSession]:
    """The HTTP client of one viewer, for server and trackers.

    It calls from the address that the viewer listens on, if that is one: in a lab every viewer has
    an address of its own, and the tracker must see it.
    """
    local = None if settings.is_anywhere else (settings.listen_host, 0)
    connector = aiohttp.TCPConnector(local_addr=local, limit=_MOST_CONNECTIONS)
    async with aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": "Toast/0.1", "Accept-Encoding": "identity"},
        auto_decompress=False,  # bytes are bounded as they come, not as they unfold
    ) as http:
        yield http


def assemble_viewer(
    source: Source,
    *,
    settings: ViewerSettings,
    session: SwarmSession,
    http: aiohttp.ClientSession,
    rng: np.random.Generator,
    origin_settings: OriginSettings | None = None,
    budget: OriginBudget | None = None,
) -> Viewer:
    """A viewer of a film, on the running event loop; not opened yet.

    Args:
        source: the film, and who has it.
        settings: how it is watched.
        session: the libtorrent session that it joins.
        http: for server and trackers; the caller closes it.
        rng: the randomness of its policies.
        origin_settings: how patient the client of the server is.
        budget: what the server may be asked for, if viewings share one; by the event loop's clock.

    Raises:
        ViewerError: nobody is named who could have the film.
    """
    findable = source.metainfo.discoverable and session.settings.discovers
    if not (source.origins or source.trackers or findable):
        raise ViewerError("this film names neither a VoD server nor a tracker: use --origin")
    loop = asyncio.get_running_loop()
    metainfo = source.metainfo

    def client(urls: tuple[str, ...], size: int) -> OriginClient | None:
        if not urls:
            return None
        return OriginClient(http, urls, film_bytes=size, clock=loop.time, settings=origin_settings)

    def film_client() -> OriginClient | None:
        contents = metainfo.contents
        if contents is None or not source.origins:
            return client(source.origins, metainfo.film_bytes)

        def stretch(file: TorrentFile) -> Stretch:
            urls = tuple(file_url(origin, contents, file) for origin in source.origins)
            return Stretch(file.start, file.size, urls)

        others = [stretch(file) for file in contents.files if file.size and file != contents.film]
        film = Stretch(contents.film.start, contents.film.size, source.origins)
        return SpanClient(http, film, others, clock=loop.time, settings=origin_settings)

    neighbourhood = Neighbourhood(
        session,
        http=http,
        trackers=source.trackers,
        info_hash=metainfo.info_hash,
        policy=create_neighbours(settings.neighbours, **settings.neighbours_options),
        rng=rng,
        clock=loop.time,
    )
    return Viewer(
        metainfo,
        session=session,
        origin=film_client(),
        hashes=client(_hash_urls(source), blockhashes.leaves_bytes(metainfo.geometry)),
        neighbourhood=neighbourhood,
        settings=settings,
        rng=rng,
        clock=loop.time,
        budget=budget,
    )


def _hash_urls(source: Source) -> tuple[str, ...]:
    """Where the hashes of blocks are: at each server, under the name that it is reached by."""
    hashes = source.metainfo.block_hashes
    if hashes is None:
        return ()
    said = urlsplit(hashes.url)
    urls = [
        said._replace(scheme=parts.scheme, netloc=parts.netloc).geturl()
        for parts in map(urlsplit, source.origins)
    ]
    return tuple(dict.fromkeys(urls))
