"""From what a person names (.torrent, URL of a title, magnet link) to a film that can be joined."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import libtorrent as lt

from toast.swarm import Announcer, Metainfo, MetainfoError, SwarmError, SwarmSession, parse_metainfo
from toast.swarm.metainfo import MAX_METAINFO_BYTES
from toast.viewer.errors import ViewerError

__all__ = ["Source", "fetch_metainfo", "resolve_source"]

# A lost SYN is sent again after 1, 3 and 7 s, and whoever pressed play would rather wait for that.
_TIMEOUT = aiohttp.ClientTimeout(total=20.0, connect=12.0)
_METADATA_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Source:
    """A film to watch: its metainfo, where the VoD server has it, and who tracks its swarm."""

    metainfo: Metainfo
    origins: tuple[str, ...]
    trackers: tuple[str, ...]


async def resolve_source(
    text: str,
    *,
    http: aiohttp.ClientSession,
    session: SwarmSession,
    origin: str | None = None,
    film: str | None = None,
) -> Source:
    """Find the film that `text` names.

    Args:
        text: path of a .torrent, URL of a .torrent or of a title on a VoD server, or magnet link.
        http: for URLs.
        session: for a magnet link whose metadata only peers have.
        origin: URL of a VoD server, or of the film there, to use besides those of the .torrent.
        film: path or name of the file to play, of a torrent of several; None: the largest film.

    Raises:
        MetainfoError: it names nothing that can be watched.
        ViewerError: it cannot be reached.
    """
    trackers: tuple[str, ...] = ()
    if text.startswith("magnet:"):
        metainfo, trackers = await _from_magnet(text, http, session, origin)
    elif text.lower().startswith(("http://", "https://")):
        _require_http(text)
        metainfo = await fetch_metainfo(text, http)
    elif "://" in text:
        raise MetainfoError(f"'{text}' cannot be watched: only http and https URLs can")
    else:
        metainfo = _from_file(Path(text))
    if film is not None:
        metainfo = metainfo.choose(film)
    origins = metainfo.origins
    if origin is not None:
        _require_http(origin)
        content = await _content_url(origin, metainfo, http)
        origins = (content, *(url for url in origins if url != content))
    return Source(metainfo, origins, tuple(dict.fromkeys((*metainfo.trackers, *trackers))))


def _from_file(path: Path) -> Metainfo:
    try:
        if path.exists() and not path.is_file():
            raise MetainfoError(f"{path} is not a file: name a .torrent")
        with path.open("rb") as file:
            data = file.read(MAX_METAINFO_BYTES + 1)
    except FileNotFoundError as error:
        raise MetainfoError(f"{path} does not exist") from error
    except OSError as error:
        raise MetainfoError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return parse_metainfo(data)
    except MetainfoError as error:
        raise MetainfoError(f"{path}: {error}") from error


def _require_http(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise MetainfoError(f"'{url}' is not the URL of a VoD server: write http://host:port")


async def _get(http: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    """Status and body of a small document."""
    try:
        async with http.get(url, timeout=_TIMEOUT, max_redirects=3) as answer:
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > MAX_METAINFO_BYTES:
                    raise ViewerError(f"{url} sends a film or worse where a .torrent was expected")
            return answer.status, bytes(body)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RuntimeError) as error:
        reason = str(error) or type(error).__name__
        raise ViewerError(f"{url} cannot be reached: {reason}") from error


async def fetch_metainfo(url: str, http: aiohttp.ClientSession) -> Metainfo:
    """The film of a .torrent, or of a title on a VoD server, by its URL.

    Raises:
        MetainfoError: there is nothing that can be watched.
        ViewerError: it cannot be reached.
    """
    status, body = await _get(http, url)
    if status != 200:
        raise ViewerError(f"{url} answers {status}: is it the URL of a title?")
    if body.lstrip()[:1] == b"{":
        title = _json(body, url)
        if not isinstance(title.get("torrent"), str):
            raise MetainfoError(f"{url} is no title of a VoD server")
        try:
            torrent = urljoin(url, title["torrent"])
        except ValueError as error:
            raise MetainfoError(f"{url} is no title of a VoD server") from error
        _require_http(torrent)
        status, body = await _get(http, torrent)
        if status != 200:
            raise ViewerError(f"{torrent} answers {status}")
        url = torrent
    try:
        return parse_metainfo(body)
    except MetainfoError as error:
        raise MetainfoError(f"{url}: {error}") from error


def _json(body: bytes, url: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MetainfoError(f"{url} is no title of a VoD server") from error
    if not isinstance(value, dict):
        raise MetainfoError(f"{url} is no title of a VoD server")
    return value


async def _content_url(origin: str, metainfo: Metainfo, http: aiohttp.ClientSession) -> str:
    """The film's URL at a VoD server named by its root; any other URL is the film's own."""
    if urlsplit(origin).path not in {"", "/"}:
        return origin
    torrent = urljoin(origin, f"/torrents/{metainfo.info_hash.hex()}.torrent")
    try:
        status, body = await _get(http, torrent)
    except ViewerError:
        # Down now may be up later: the .torrent's own URL of it, if it is the same server.
        same = [u for u in metainfo.origins if urlsplit(u).netloc == urlsplit(origin).netloc]
        if same:
            return same[0]
        raise
    if status != 200:
        raise ViewerError(f"VoD server {origin} does not have this film (it answers {status})")
    chosen = None if metainfo.contents is None else str(metainfo.contents.film.path)
    urls = parse_metainfo(body, film=chosen).origins
    if not urls:
        raise ViewerError(f"VoD server {origin} does not say where the film is")
    # Whatever name the server knows itself by: it was reached under the one given.
    return urljoin(origin, urlsplit(urls[0]).path)


async def _from_magnet(
    text: str, http: aiohttp.ClientSession, session: SwarmSession, origin: str | None
) -> tuple[Metainfo, tuple[str, ...]]:
    try:
        params = lt.parse_magnet_uri(text)
    except RuntimeError as error:
        raise MetainfoError(f"this is no magnet link ({error})") from error
    if not params.info_hashes.has_v1():
        raise MetainfoError("this magnet link is BitTorrent v2 only; a v1 or hybrid one is needed")
    info_hash = params.info_hashes.v1.to_bytes()
    trackers = tuple(params.trackers)
    if origin is not None:
        _require_http(origin)
        status, body = await _get(http, urljoin(origin, f"/torrents/{info_hash.hex()}.torrent"))
        if status == 200:
            metainfo = parse_metainfo(body)
            if metainfo.info_hash != info_hash:
                raise MetainfoError(f"VoD server {origin} answers with another film")
            return metainfo, trackers
    return await _metadata_from_peers(params, info_hash, trackers, http, session), trackers


async def _metadata_from_peers(
    params: Any,
    info_hash: bytes,
    trackers: tuple[str, ...],
    http: aiohttp.ClientSession,
    session: SwarmSession,
) -> Metainfo:
    """BEP 9: the info dictionary from whoever is in the swarm."""
    received: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Listener:
        def on_alert(self, alert: Any) -> None:
            if isinstance(alert, lt.metadata_received_alert) and not received.done():
                received.set_result(None)

    params.save_path = "."  # nothing is stored: the torrent goes before it has a file
    params.trackers = []
    params.flags |= lt.torrent_flags.upload_mode
    if not session.discover():
        flags = lt.torrent_flags
        params.flags |= flags.disable_pex | flags.disable_dht | flags.disable_lsd
    params.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
    handle = session.native.add_torrent(params)
    session.register(handle, Listener())
    try:
        for url in trackers:
            announcer = Announcer(
                http, url, info_hash=info_hash, peer_id=session.peer_id, port=session.port
            )
            try:
                answer = await announcer.announce(uploaded=0, downloaded=0, left=1, playhead=None)
            except SwarmError:
                continue  # another tracker may know more
            for peer in answer.peers:
                handle.connect_peer(peer.address)
        async with asyncio.timeout(_METADATA_SECONDS):
            await received
        info = handle.torrent_file()
        torrent = lt.bencode(lt.create_torrent(info).generate())
    except TimeoutError as error:
        raise ViewerError(
            "nobody in the swarm sent this magnet link's metadata: name a VoD server with --origin"
        ) from error
    finally:
        session.unregister(handle)
        session.native.remove_torrent(handle)
    return parse_metainfo(torrent)
