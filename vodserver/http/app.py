"""The routes, and the server that offers them."""

import asyncio
import functools
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from aiohttp import web

from vodserver.errors import ServeError, ServeUsageError
from vodserver.http.connections import Gate, HttpStatistics
from vodserver.http.content import send_content
from vodserver.settings import ServeSettings
from vodserver.store import Store, Title
from vodserver.torrent import compose_torrent

__all__ = ["HttpServer"]

_JSON: Final = functools.partial(json.dumps, ensure_ascii=False, allow_nan=False)
_EVERY_ADDRESS: Final = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - to refuse them
_log = logging.getLogger(__name__)

SeedStatus = Callable[[], Awaitable[dict[str, Any] | None]]


class HttpServer:
    """Serves a store over HTTP.

    Args:
        store: what is served.
        settings: how.
        seed_status: asks the seed for its counters; answers None where there is no seed.
    """

    def __init__(self, store: Store, settings: ServeSettings, *, seed_status: SeedStatus) -> None:
        self._store = store
        self._settings = settings
        self._seed_status = seed_status
        self._started = time.monotonic()
        self._runner = web.AppRunner(
            self._application(),
            handle_signals=False,
            access_log=None,
            keepalive_timeout=settings.keepalive_timeout_seconds,
            shutdown_timeout=settings.shutdown_seconds,
        )
        self._gate: Gate | None = None
        self._server: asyncio.Server | None = None
        self.address = ""
        """The IP address that it listens on, once started."""
        self.url = ""
        """Where it listens, once started."""
        self.public_url = ""
        """What viewers reach it as, once started."""

    async def start(self) -> None:
        """Bind and begin to serve.

        Raises:
            ServeUsageError: no viewer could reach what the URLs would name.
            ServeError: the port is taken, or the address is not one of this machine's.
        """
        host, port = self._settings.host, self._settings.port
        if host in _EVERY_ADDRESS and self._settings.public_url is None:
            raise ServeUsageError(
                f"viewers cannot reach '{host}': give the server's URL with --public-url"
            )
        await self._runner.setup()
        make_protocol = cast("Callable[[], asyncio.Protocol]", self._runner.server)
        self._gate = Gate(
            make_protocol,
            limit=self._settings.http_connections,
            header_timeout=self._settings.header_timeout_seconds,
        )
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._gate, host, port, backlog=512, reuse_address=True
            )
        except (OSError, OverflowError, UnicodeError) as error:
            await self._runner.cleanup()
            reason = getattr(error, "strerror", None) or str(error)
            raise ServeError(
                f"cannot serve on {host} port {port}: {reason}; "
                "choose another with --port or --host"
            ) from error
        self.address, bound_port = self._server.sockets[0].getsockname()[:2]
        shown = f"[{self.address}]" if ":" in self.address else self.address
        self.url = f"http://{shown}:{bound_port}"
        self.public_url = (self._settings.public_url or self.url).rstrip("/")

    async def close(self) -> None:
        """Stop listening, let requests under way end, and close."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._runner.cleanup()
        if self._gate is not None:
            await self._gate.close()

    def statistics(self) -> HttpStatistics:
        """What was done so far."""
        return self._gate.statistics() if self._gate is not None else HttpStatistics(0, 0, 0, 0)

    def torrent(self, title: Title) -> bytes:
        """The .torrent of a title, with the addresses that this server goes by."""
        return compose_torrent(
            title,
            trackers=self._settings.trackers,
            content_url=self._url_of(title, "content"),
        )

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[_say_who])
        app.add_routes(
            [
                web.get("/titles", self._get_titles),
                web.get("/titles/{id}", self._get_title),
                web.get("/titles/{id}/content", self._get_content),
                web.get("/titles/{id}/torrent", self._get_torrent),
                web.get("/torrents/{info_hash}.torrent", self._get_torrent_by_hash),
                web.get("/status", self._get_status),
                web.get("/healthz", self._get_health),
            ]
        )
        return app

    def _url_of(self, title: Title, part: str) -> str:
        return f"{self.public_url}/titles/{title.id}/{part}"

    def _describe(self, title: Title) -> dict[str, Any]:
        return {
            "id": title.id,
            "name": title.name,
            "bytes": title.film_bytes,
            "duration_seconds": title.duration,
            "piece_bytes": title.piece_bytes,
            "info_hash": title.info_hash,
            "sha256": title.sha256,
            "torrent": self._url_of(title, "torrent"),
            "content": self._url_of(title, "content"),
            **title.media,
        }

    def _title_of(self, request: web.Request) -> Title:
        title = self._store.title(request.match_info["id"])
        if title is None:
            raise web.HTTPNotFound(text="there is no such title: /titles lists those there are\n")
        return title

    async def _get_titles(self, _: web.Request) -> web.Response:
        titles = [self._describe(title) for title in self._store.titles()]
        return web.json_response(titles, dumps=_JSON)

    async def _get_title(self, request: web.Request) -> web.Response:
        return web.json_response(self._describe(self._title_of(request)), dumps=_JSON)

    async def _get_content(self, request: web.Request) -> web.StreamResponse:
        return await send_content(
            request,
            self._store,
            self._title_of(request),
            chunk_bytes=self._settings.chunk_bytes,
            send_timeout=self._settings.send_timeout_seconds,
        )

    async def _get_torrent(self, request: web.Request) -> web.Response:
        return self._torrent_response(self._title_of(request))

    async def _get_torrent_by_hash(self, request: web.Request) -> web.Response:
        wanted = request.match_info["info_hash"].lower()
        for title in self._store.titles():
            if title.info_hash == wanted:
                return self._torrent_response(title)
        raise web.HTTPNotFound(text="no title has this info-hash: /titles lists those there are\n")

    def _torrent_response(self, title: Title) -> web.Response:
        disposition = f'attachment; filename="{title.id}.torrent"'  # ids are a-z, 0-9 and "-"
        return web.Response(
            body=self.torrent(title),
            content_type="application/x-bittorrent",
            headers={"Content-Disposition": disposition},
        )

    async def _get_status(self, _: web.Request) -> web.Response:
        http = self.statistics()
        store = self._store.statistics()
        seed = await self._seed_status()
        status = {
            "uptime_seconds": round(time.monotonic() - self._started, 3),
            "titles": len(self._store.titles()),
            "http_bytes_sent": http.bytes_sent,
            "http_connections": http.connections,
            "http_accepted": http.accepted,
            "http_refused": http.refused,
            "seed_bytes_sent": seed["bytes_sent"] if seed else 0,
            "seed_payload_bytes_sent": seed["payload_bytes_sent"] if seed else 0,
            "seed": seed,
            "bad_replicas": store.bad_replicas,
            "disks": [
                {
                    "number": row.number,
                    "there": row.number in store.disks,
                    **(_disk_fields(store.disks[row.number]) if row.number in store.disks else {}),
                }
                for row in self._store.disk_rows
            ],
        }
        return web.json_response(status, dumps=_JSON)

    async def _get_health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")


def _disk_fields(statistics: Any) -> dict[str, int]:
    return {name: getattr(statistics, name) for name in statistics.__dataclass_fields__}


@web.middleware
async def _say_who(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn what no handler foresaw into a plain 500, and tell the operator, not the stranger."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except ConnectionError:
        raise  # the client went away: aiohttp knows what to do
    except Exception as error:
        _log.exception("request %s %s failed", request.method, request.path)
        raise web.HTTPInternalServerError(text="the server failed; its log says why\n") from error
