"""The films' URLs, for any aiohttp application: the gateway's own, or the daemon's.

    /films/{id}/{name}               the film; ranges by RFC 9110
    /films/{id}/playlist.m3u8        a playlist that opens it in a player; .m3u too
    /films/{id}/subtitles/{n}.vtt    its subtitles as WebVTT; without .vtt as they were found
    /films/{id}/poster.jpg           its picture

`{id}` is the info-hash. They are read with GET and HEAD; OPTIONS says so. On an address that other
machines can reach, each needs `?key=`, see `film_key`.
"""

import asyncio
import hmac
import secrets
from typing import Final
from urllib.parse import quote

from aiohttp import web

from toast.common.errors import ToastError
from toast.common.ranges import plan_range
from toast.gateway.guard import film_key, is_from_this_machine
from toast.gateway.playlist import make_playlist
from toast.gateway.sending import Sender
from toast.gateway.settings import GatewaySettings
from toast.gateway.source import Films, FilmSource, Subtitle
from toast.media.subtitles import to_webvtt

__all__ = ["FilmRoutes"]

_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_DLNA: Final = {
    # Byte seeking allowed, no conversion: what a television wants to read before it seeks.
    "transferMode.dlna.org": "Streaming",
    "contentFeatures.dlna.org": "DLNA.ORG_OP=01;DLNA.ORG_CI=0",
}
_WEBVTT: Final = "text/vtt; charset=utf-8"
_SRT: Final = "application/x-subrip"
_UNCACHED: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class FilmRoutes:
    """The routes of films.

    Args:
        films: where films are found; asked anew for each request.
        secret: what keys are made from; by default one that is forgotten with this object.
        settings: bounds.
    """

    def __init__(
        self,
        films: Films,
        *,
        secret: bytes | None = None,
        settings: GatewaySettings | None = None,
    ) -> None:
        self._films = films
        self._secret = secret or secrets.token_bytes(32)
        self._sender = Sender((settings or GatewaySettings()).write_bytes)

    @property
    def bytes_sent(self) -> int:
        """Film bytes handed to players so far."""
        return self._sender.bytes_sent

    @property
    def readers(self) -> int:
        """Answers that are being sent now."""
        return self._sender.readers

    async def wait_idle(self) -> None:
        """Wait until no film is being sent, and what was sent has left this process.

        For a viewing that ends while a player still reads the last seconds.
        """
        await self._sender.wait_idle()

    def add_to(self, application: web.Application) -> None:
        """Add the routes to an application, which must run with `handler_cancellation`.

        Only then does a player that leaves end the wait for bytes that nobody will read.
        """
        add = application.router.add_route
        base = "/films/{film:[0-9a-f]{40}}"
        add("*", base + "/playlist.{kind:m3u8?}", self._playlist)
        add("*", base + "/subtitles/{number:[0-9]{1,4}}{ending:(\\.vtt)?}", self._subtitle)
        add("*", base + "/poster.jpg", self._poster)
        add("*", base + "/{name}", self._film)

    # -- URLs ------------------------------------------------------------------------------------

    def film_path(self, source: FilmSource, *, keyed: bool = False) -> str:
        """Path (and query, if keyed) of the film itself."""
        return self._path(source, quote(source.film_name, safe=""), keyed=keyed)

    def playlist_path(self, source: FilmSource, *, keyed: bool = False) -> str:
        """Path (and query, if keyed) of its playlist."""
        return self._path(source, "playlist.m3u8", keyed=keyed)

    def poster_path(self, source: FilmSource, *, keyed: bool = False) -> str:
        """Path (and query, if keyed) of its picture."""
        return self._path(source, "poster.jpg", keyed=keyed)

    def subtitle_paths(self, source: FilmSource, *, keyed: bool = False) -> list[str]:
        """Paths (and queries, if keyed) of its subtitles as WebVTT, in their order."""
        return [
            self._path(source, f"subtitles/{number}.vtt", keyed=keyed)
            for number in range(len(source.subtitles))
        ]

    def _path(self, source: FilmSource, rest: str, *, keyed: bool) -> str:
        query = f"?key={film_key(self._secret, source.film_id)}" if keyed else ""
        return f"/films/{source.film_id}/{rest}{query}"

    # -- answers ---------------------------------------------------------------------------------

    async def _film(self, request: web.Request) -> web.StreamResponse:
        source = self._source(request)
        if request.match_info["name"] != source.film_name:
            raise _line(web.HTTPNotFound, f"this film is at {self.film_path(source)}")
        if request.method == "OPTIONS":
            return _options()
        plan = plan_range(
            request.method,
            _joined(request),
            length=source.film_bytes,
            etag=source.etag,
            last_modified=source.last_modified,
            content_type=source.content_type,
            multipart=True,
        )
        headers = {**plan.headers, **_UNCACHED}
        if plan.status in {200, 206}:
            headers |= _DLNA
            headers["Content-Disposition"] = f"inline; filename*=UTF-8''{quote(source.film_name)}"
        return await self._sender.send(request, source, plan, headers)

    async def _playlist(self, request: web.Request) -> web.StreamResponse:
        source = self._source(request)
        if request.method == "OPTIONS":
            return _options()
        text = make_playlist(
            title=source.title,
            duration_seconds=source.duration_seconds,
            film_url=self._url(request, self.film_path(source, keyed=_is_keyed(request))),
            subtitle_urls=[
                self._url(request, path)
                for path in self.subtitle_paths(source, keyed=_is_keyed(request))
            ],
        )
        kind = request.match_info["kind"]
        charset = "utf-8" if kind == "m3u8" else "latin-1"
        disposition = f'inline; filename="{source.film_id}.{kind}"'
        return web.Response(
            body=text.encode(charset, "replace"),
            content_type="audio/x-mpegurl",
            charset=charset,
            headers={**_UNCACHED, "Content-Disposition": disposition},
        )

    async def _subtitle(self, request: web.Request) -> web.StreamResponse:
        source = self._source(request)
        number = int(request.match_info["number"])
        subtitles = source.subtitles
        if number >= len(subtitles):
            raise _line(web.HTTPNotFound, f"this film has {len(subtitles)} subtitles")
        if request.method == "OPTIONS":
            return _options()
        subtitle = subtitles[number]
        try:
            data = await subtitle.load()
            if request.match_info["ending"]:
                data = await asyncio.to_thread(to_webvtt, data)
        except ToastError as error:
            raise _line(web.HTTPUnprocessableEntity, str(error)) from error
        return _subtitle_response(subtitle, data, converted=bool(request.match_info["ending"]))

    async def _poster(self, request: web.Request) -> web.StreamResponse:
        source = self._source(request)
        if request.method == "OPTIONS":
            return _options()
        picture = await source.poster()
        if picture is None:
            raise _line(web.HTTPNotFound, "there is no picture of this film")
        fields = {"Cache-Control": "private, max-age=3600", "X-Content-Type-Options": "nosniff"}
        return web.Response(body=picture, content_type="image/jpeg", headers=fields)

    # -- what all of them ask first --------------------------------------------------------------

    def _source(self, request: web.Request) -> FilmSource:
        """The film that a request is about, if it may have it.

        Raises:
            web.HTTPException: the answer to give instead.
        """
        film_id = request.match_info["film"]
        if _is_keyed(request):
            key = request.query.get("key", "")
            if not hmac.compare_digest(key.encode(), film_key(self._secret, film_id).encode()):
                raise _line(web.HTTPForbidden, "this film's URL needs its key here")
        source = self._films.get(film_id)
        if source is None:
            raise _line(web.HTTPNotFound, "there is no such film here")
        if request.method not in _METHODS:
            raise web.HTTPMethodNotAllowed(
                request.method, _METHODS, text="a film can only be read\n"
            )
        return source

    def _url(self, request: web.Request, path: str) -> str:
        return f"{request.scheme}://{request.host}{path}"


def _is_keyed(request: web.Request) -> bool:
    return not is_from_this_machine(request)


def _options() -> web.Response:
    return web.Response(
        status=204,
        headers={
            "Allow": ", ".join(_METHODS),
            "Access-Control-Allow-Methods": ", ".join(_METHODS),
            "Access-Control-Allow-Headers": "Range, If-Range",
        },
    )


def _joined(request: web.Request) -> dict[str, str]:
    """The request's fields, each on one line."""
    return {name: ", ".join(request.headers.getall(name)) for name in request.headers}


def _line(status: type[web.HTTPException], text: str) -> web.HTTPException:
    return status(text=f"{text}\n")


def _subtitle_response(subtitle: Subtitle, data: bytes, *, converted: bool) -> web.Response:
    webvtt = converted or subtitle.file_name.lower().endswith(".vtt")
    return web.Response(
        body=data,
        headers=_UNCACHED | {"Content-Type": _WEBVTT if webvtt else _SRT},
    )
