"""The API's handlers: from a request to the library and back."""

import asyncio
import json
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from toast.common.errors import ToastError
from toast.daemon.auth import Token
from toast.daemon.checks import check_seconds
from toast.daemon.describing import describe_film
from toast.daemon.errors import DaemonError, RequestError
from toast.daemon.events import Events, pieces_of
from toast.daemon.film import Film
from toast.daemon.library import Library
from toast.daemon.metrics import render_metrics
from toast.daemon.openapi import DOCS_HEADERS, make_docs_page, make_openapi
from toast.daemon.operations import OPERATIONS
from toast.gateway import FilmRoutes, is_from_this_machine
from toast.swarm.metainfo import MAX_METAINFO_BYTES

__all__ = ["Api", "toast_version"]

_MOST_JSON_BYTES: Final = 64 * 1024
_BODY_SECONDS: Final = 30.0
_TORRENT: Final = "application/x-bittorrent"
_BEAT_SECONDS: Final = 15.0
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def toast_version() -> str:
    """The version that is installed."""
    try:
        return version("toast-vod")
    except PackageNotFoundError:
        return "0"


class Api:
    """Handlers of all operations, under their names in `OPERATIONS`.

    Args:
        library: the films.
        token: who may ask.
        routes: where their content is.
        peers_port: port of the BitTorrent side.
        keyed: whether content URLs carry a key, because other machines are let in.
        is_alive: whether the library is being run.
    """

    def __init__(
        self,
        library: Library,
        *,
        token: Token,
        routes: FilmRoutes,
        peers_port: int,
        keyed: bool,
        is_alive: Callable[[], bool],
    ) -> None:
        self._library = library
        self._token = token
        self._routes = routes
        self._peers_port = peers_port
        self._keyed = keyed
        self._is_alive = is_alive
        self._started_at = time.monotonic()
        self._version = toast_version()
        self.events = Events(
            films=library.films,
            describe=self.describe,
            status=self.status,
            most_subscribers=library.settings.most_subscribers,
            refresh_seconds=library.settings.refresh_seconds,
        )
        library.listen(self.events.tell)

    def add_to(self, application: web.Application) -> None:
        """Add every operation to an application, with who may ask and how errors are told."""
        application.middlewares.append(self._admit)
        for operation in OPERATIONS:
            handler = getattr(self, operation.name)
            application.router.add_route(
                operation.method,
                operation.full_path.replace("{id}", "{id:[0-9a-f]{40}}"),
                handler if operation.top else _tell_errors(handler),
            )

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let in who holds the token; give a browser that shows it once a cookie instead."""
        path = request.path
        if path == "/" and "token" in request.query:
            return self._exchange(request.query["token"])
        needs = path == "/" or path.startswith("/api/")
        if path == "/metrics":
            needs = not is_from_this_machine(request)
        if needs and not self._token.admits(
            request.headers.get("Authorization"), request.cookies.get(self._cookie)
        ):
            if path == "/":
                return web.Response(status=401, text="this page is opened by: toast open\n")
            return _error(401, "the token is missing or wrong: it is in the file STATE/token")
        return await handler(request)

    @property
    def _cookie(self) -> str:
        # Browsers keep cookies by host, whatever the port: two daemons must not share one.
        return f"toast-{self._token.film_key('')[:8]}"

    def _exchange(self, given: str) -> web.Response:
        if not self._token.is_right(given):
            return web.Response(status=401, text="this token is wrong: use toast open\n")
        response = web.Response(status=303, headers={"Location": "/", **_HEADERS})
        response.set_cookie(
            self._cookie,
            self._token.cookie,
            httponly=True,
            samesite="Strict",
            max_age=365 * 24 * 3600,
        )
        return response

    # -- what is shown ---------------------------------------------------------------------------

    def describe(self, film: Film) -> dict[str, Any]:
        """A film as the API shows it."""
        routes, keyed = self._routes, self._keyed
        paths = routes.subtitle_paths(film, keyed=keyed)
        return describe_film(film) | {
            "content_url": routes.film_path(film, keyed=keyed),
            "playlist_url": routes.playlist_path(film, keyed=keyed),
            "poster_url": routes.poster_path(film, keyed=keyed) if film.has_poster else None,
            "subtitles": [
                {"label": subtitle.label, "language": subtitle.language, "url": path}
                for subtitle, path in zip(film.subtitles, paths, strict=False)
            ],
        }

    def status(self) -> dict[str, Any]:
        """The status as the API shows it."""
        library, limits = self._library, self._library.limits
        shown = [describe_film(film) for film in library.films() if film.is_running]
        return {
            "version": self._version,
            "uptime_seconds": round(time.monotonic() - self._started_at, 1),
            "films": len(library.films()),
            "down_rate": sum(film["down_rate"] for film in shown),
            "up_rate": sum(film["up_rate"] for film in shown),
            "uploaded_bytes": library.consumption.uploaded_bytes,
            "upload_quota_bytes": library.rules.upload_day_bytes,
            "disk": library.disk(),
            "origin_bytes_today": library.consumption.origin_bytes,
            "origin_quota_bytes": library.rules.origin_day_bytes,
            "schedule": {
                "text": library.rules.schedule,
                "uploads": limits.uploads,
                "downloads": limits.downloads,
                "upload_rate": limits.upload_rate,
                "download_rate": limits.download_rate,
                "next_change": library.next_change(),
            },
            "peers_port": self._peers_port,
            "notices": list(library.notices),
        }

    # -- operations ------------------------------------------------------------------------------

    async def get_status(self, _request: web.Request) -> web.Response:
        """How it goes."""
        return _json(self.status())

    async def list_films(self, _request: web.Request) -> web.Response:
        """All films."""
        return _json({"films": [self.describe(film) for film in self._library.films()]})

    async def add_film(self, request: web.Request) -> web.Response:
        """Take a film in."""
        if request.content_type == _TORRENT:
            source: str | bytes = await _body(request, MAX_METAINFO_BYTES)
            options: dict[str, Any] = dict(request.query)
        else:
            options = await _json_body(request)
            source = options.pop("source", None)
            if not isinstance(source, str):
                raise RequestError("source is missing: a URL, a magnet link or a .torrent")
        unknown = set(options) - {"mode", "behaviour"}
        if unknown:
            raise RequestError(f"a film cannot be added with '{min(unknown)[:40]}'")
        film = await self._library.add(
            source, mode=options.get("mode", "download"), behaviour=options.get("behaviour")
        )
        return _json(self.describe(film), status=201)

    async def get_film(self, request: web.Request) -> web.Response:
        """One film."""
        return _json(self.describe(self._film(request)))

    async def change_film(self, request: web.Request) -> web.Response:
        """Change a film."""
        film_id = self._film(request).id
        changes = await _json_body(request)
        return _json(self.describe(await self._library.change(film_id, changes)))

    async def remove_film(self, request: web.Request) -> web.Response:
        """Let a film go."""
        data = request.query.get("data", "0") not in {"", "0"}
        await self._library.remove(self._film(request).id, data=data)
        return web.Response(status=204)

    async def report_position(self, request: web.Request) -> web.Response:
        """Where a player is."""
        film = self._film(request)
        body = await _json_body(request)
        unknown = set(body) - {"position_seconds", "paused", "rate"}
        if unknown:
            raise RequestError(f"a position has no '{min(unknown)[:40]}'")
        position = check_seconds("position_seconds", body.get("position_seconds"))
        paused, rate = body.get("paused", False), body.get("rate", 1.0)
        if not isinstance(paused, bool):
            raise RequestError("paused must be true or false")
        if check_seconds("rate", rate) > 16:
            raise RequestError("rate must be at most 16")
        film.play_to(position, paused=paused or rate == 0, rate=rate or 1.0)
        return web.Response(status=204)

    async def get_pieces(self, request: web.Request) -> web.Response:
        """Where each piece came from."""
        return _json(pieces_of(self._film(request)))

    async def get_settings(self, _request: web.Request) -> web.Response:
        """The rules."""
        return _json(self._library.shown_rules())

    async def change_settings(self, request: web.Request) -> web.Response:
        """Change some rules."""
        await self._library.change_rules(await _json_body(request))
        return _json(self._library.shown_rules())

    async def get_openapi(self, _request: web.Request) -> web.Response:
        """This API."""
        return _json(make_openapi(self._version))

    async def get_docs(self, _request: web.Request) -> web.Response:
        """This API, to read."""
        page = make_docs_page(self._version)
        return web.Response(text=page, content_type="text/html", headers=DOCS_HEADERS)

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        """What happens, until the subscriber leaves or does not keep up."""
        queue = self.events.subscribe()
        try:
            response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
            await response.prepare(request)
            while True:
                try:
                    async with asyncio.timeout(_BEAT_SECONDS):
                        event = await queue.get()
                except TimeoutError:
                    event = b": still here\n\n"
                if event is None:
                    return response
                await response.write(event)
        except ConnectionError:
            return response  # it left
        finally:
            self.events.unsubscribe(queue)

    async def get_metrics(self, _request: web.Request) -> web.Response:
        """Counters and gauges."""
        films = self._library.films()
        shown = [describe_film(film) for film in films]
        states: dict[str, float] = {}
        for film in shown:
            states[f"state={film['state']}"] = states.get(f"state={film['state']}", 0) + 1

        def total(name: str) -> float:
            return float(sum(film[name] for film in shown))

        received = {f"source={of}": total(f"bytes_from_{of}") for of in ("peers", "seed", "origin")}
        everything = sum(received.values())
        disk, used = self._library.disk(), self._library.consumption
        text = render_metrics(
            {
                "toast_films": states,
                "toast_film_pieces": total("pieces_have"),
                "toast_readers": total("readers"),
                "toast_neighbours": total("neighbours"),
                "toast_down_rate_bytes": total("down_rate"),
                "toast_up_rate_bytes": total("up_rate"),
                "toast_received_bytes_total": received,
                "toast_uploaded_bytes_total": total("uploaded_bytes"),
                "toast_stalls_total": total("stalls"),
                "toast_offload_ratio": received["source=peers"] / everything
                if everything
                else None,
                "toast_uploaded_today_bytes": used.uploaded_bytes,
                "toast_origin_today_bytes": used.origin_bytes,
                "toast_disk_used_bytes": disk["used_bytes"],
                "toast_disk_free_bytes": disk["free_bytes"],
                "toast_content_sent_bytes_total": self._routes.bytes_sent,
                "toast_subscribers": self.events.subscribers,
                "toast_uptime_seconds": time.monotonic() - self._started_at,
            }
        )
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return web.Response(body=text.encode(), headers={**_HEADERS, "Content-Type": kind})

    async def get_health(self, _request: web.Request) -> web.Response:
        """Whether the daemon does its work."""
        if self._is_alive():
            return web.Response(text="ok\n", headers=_HEADERS)
        return web.Response(status=503, text="the library stands still: restart\n")

    def _film(self, request: web.Request) -> Film:
        return self._library.film(request.match_info["id"])


async def _json_body(request: web.Request) -> dict[str, Any]:
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="the body must be application/json")
    try:
        value = json.loads(await _body(request, _MOST_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise RequestError("the body is no JSON") from error
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object")
    return value


async def _body(request: web.Request, most: int) -> bytes:
    """A body of at most so many bytes, which must come within half a minute."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > most:
                    raise web.HTTPRequestEntityTooLarge(
                        most, len(body), text=f"the body may have {most} bytes"
                    )
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(text="the body did not come") from error
    return bytes(body)


def _tell_errors(handler: Handler) -> Handler:
    """Answer with one line of JSON where the handler raises."""

    async def tell(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except DaemonError as error:
            return _error(error.status, str(error))
        except ToastError as error:
            return _error(422, str(error))
        except web.HTTPException as error:
            return _error(error.status, error.text or error.reason)

    return tell


def _error(status: int, message: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return _json({"error": " ".join(message.split())}, status=status, headers=headers)


def _json(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    text = json.dumps(value, allow_nan=False)
    return web.json_response(text=text, status=status, headers={**_HEADERS, **(headers or {})})
