"""The routes, and the server that offers them."""

import asyncio
import functools
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import hdrs, web

from toast.common.errors import ToastError
from vodserver.errors import ServeError, ServeUsageError
from vodserver.http.access_log import AccessEntry, AccessLog
from vodserver.http.answers import COMMON_FIELDS, add_common_fields
from vodserver.http.blocks import send_blocks
from vodserver.http.connections import Gate, HttpStatistics
from vodserver.http.content import content_fields, send_content
from vodserver.http.fast import FastPath, FastRequest
from vodserver.http.guard import ROUTE, answer_failures, make_guard, make_protocol, make_recorder
from vodserver.http.limits import AddressLimit, Timeouts
from vodserver.http.links import LinkPolicy, read_secrets
from vodserver.http.listening import listen
from vodserver.http.metrics import (
    CONTENT_TYPE,
    HttpCounts,
    LoopProbe,
    Sample,
    render,
    samples_of_counts,
    samples_of_status,
)
from vodserver.http.status import SeedStatus, ServedStore, http_status, store_status
from vodserver.http.stream import (
    SENDING,
    WRITTEN,
    Gatekeeper,
    SendLimit,
    Streams,
    check_settings,
    send_stream,
)
from vodserver.http.tls import read_tls
from vodserver.settings import ServeSettings
from vodserver.store import Title
from vodserver.torrent import compose_torrent

__all__ = ["HttpServer"]

_JSON: Final = functools.partial(json.dumps, ensure_ascii=False, allow_nan=False)
_EVERY_ADDRESS: Final = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - to refuse them
_IN_TORRENT: Final = ("content", "blocks")
_CONTENT_ROUTE: Final = "/titles/{id}/content"
_CLIENT_GONE: Final = 499
"""What servers note where the client left before the end; no answer ever has it."""

_SIGNATURE: Final = re.compile(r"\bsig=[^&]*")
_log = logging.getLogger(__name__)

Metrics = Callable[[], Awaitable[str]]
Status = Callable[[], Awaitable[dict[str, Any]]]


class HttpServer:
    """Serves a store over HTTP.

    Args:
        store: what is served.
        settings: how.
        seed_status: asks the seed for its counters; answers None where there is no seed.
        status: asks for what `/status` says of store and seed, or of more; of this process's own
            store if not given.
        metrics: asks for what `/metrics` says; what this process knows if not given.
        gatekeeper: decides which streams are let in; this process itself if not given.
        reuse_port: let other processes of this user serve on the same port (SO_REUSEPORT).

    Raises:
        ServeUsageError: the settings do not fit together, or a file that they name is not good.
    """

    def __init__(
        self,
        store: ServedStore,
        settings: ServeSettings,
        *,
        seed_status: SeedStatus | None = None,
        status: Status | None = None,
        metrics: Metrics | None = None,
        gatekeeper: Gatekeeper | None = None,
        reuse_port: bool = False,
    ) -> None:
        check_settings(settings)
        self._store = store
        self._settings = settings
        self._store_status = status or functools.partial(store_status, store, seed_status)
        self._metrics = metrics
        self._reuse_port = reuse_port
        self._started = time.monotonic()
        self._links = _read_links(settings)
        self._tls = read_tls(settings)
        self._clients = AddressLimit(settings.client_connections)
        self._counts = HttpCounts()
        self._probe = LoopProbe()
        self._streams = Streams(
            settings,
            disks=lambda: self._store.statistics().disks,
            sent_bytes=lambda: self.statistics().bytes_sent,
            counts=self._counts,
            gatekeeper=gatekeeper,
        )
        self._access_log: AccessLog | None = None
        self._runner = web.AppRunner(
            self._application(),
            handle_signals=False,
            keepalive_timeout=settings.keepalive_timeout_seconds,
            shutdown_timeout=settings.shutdown_seconds,
        )
        self._gate: Gate | None = None
        self._servers: list[asyncio.Server] = []
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
        settings = self._settings
        host, port = settings.host, settings.port
        if host in _EVERY_ADDRESS and settings.public_url is None:
            raise ServeUsageError(
                f"viewers cannot reach '{host}': give the server's URL with --public-url"
            )
        if settings.access_log is not None:
            self._access_log = AccessLog(settings.access_log, settings.access_log_format)
        await self._runner.setup()
        self._gate = self._make_gate()
        context = None if self._tls is None else self._tls.context
        try:
            self._servers = await listen(
                self._gate,
                host,
                port,
                tls=context,
                handshake_seconds=settings.header_timeout_seconds,
                reuse_port=self._reuse_port,
            )
        except (OSError, OverflowError, UnicodeError) as error:
            await self.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise ServeError(
                f"cannot serve on {host} port {port}: {reason}; "
                "choose another with --port or --host"
            ) from error
        self.address, bound_port = self._servers[0].sockets[0].getsockname()[:2]
        shown = f"[{self.address}]" if ":" in self.address else self.address
        self.url = f"{'http' if context is None else 'https'}://{shown}:{bound_port}"
        self.public_url = (settings.public_url or self.url).rstrip("/")
        self._probe.start()

    async def close(self) -> None:
        """Stop listening, let requests under way end, and close."""
        self._probe.stop()
        for server in self._servers:
            server.close()
        self._servers = []
        await self._runner.cleanup()
        if self._gate is not None:
            await self._gate.close(grace_seconds=self._settings.shutdown_seconds)
        if self._access_log is not None:
            self._access_log.close()
            self._access_log = None

    def reload(self) -> None:
        """Read certificate and secrets again, and go on in a new access log (SIGHUP).

        What cannot be read is told to the operator, and what was in use stays in use.
        """
        if self._access_log is not None:
            self._access_log.reopen()
        try:
            self._links = _read_links(self._settings)
            if self._tls is not None:
                self._tls.reload()
        except ToastError as error:
            _log.warning("%s; what was in use stays in use", error)

    def statistics(self) -> HttpStatistics:
        """What was done so far."""
        return self._gate.statistics() if self._gate is not None else HttpStatistics(0, 0, 0, 0)

    def _torrent(self, title: Title, query: Mapping[str, str]) -> bytes:
        """The .torrent of a title, with the addresses that this server goes by.

        Those in it hold as long as the link by which it was asked for.
        """
        content_url, blocks_url = (
            "?".join(filter(None, (self._url_of(title, part), self._links.extend(path, query))))
            for part, path in ((each, f"/titles/{title.id}/{each}") for each in _IN_TORRENT)
        )
        return compose_torrent(
            title,
            trackers=self._settings.trackers,
            content_url=content_url,
            blocks_url=blocks_url,
        )

    def authorize(
        self, path: str, query: Mapping[str, str], now: float, peer: str | None
    ) -> str | None:
        """Whether a request may have what it asks for; see `LinkPolicy.authorize`."""
        refusal = self._links.authorize(path, query, now, peer)
        if refusal is not None:
            self._counts.add("vod_links_refused_total")
        return refusal

    def _make_gate(self) -> Gate:
        settings, server = self._settings, self._runner.server
        assert server is not None
        # What is limited or signed takes the long way, where that is looked after.
        plain = not self._links.required and settings.egress_rate is None
        fast = FastPath(self._store, lambda title: content_fields(title) | COMMON_FIELDS)
        return Gate(
            make_protocol(server, settings, make_recorder(self._note)),
            limit=settings.http_connections,
            timeouts=Timeouts(
                header_seconds=settings.header_timeout_seconds,
                keepalive_seconds=settings.keepalive_timeout_seconds,
                send_seconds=settings.send_timeout_seconds,
            ),
            admit=self._clients,
            fast=fast if plain else None,
            source=self._store,
            observe=self._note_fast,
        )

    def _application(self) -> web.Application:
        app = web.Application(
            middlewares=[answer_failures, make_guard(self.authorize, self._note_gone)]
        )
        app.on_response_prepare.append(add_common_fields)
        app.add_routes(
            [
                web.get("/titles", self._get_titles),
                web.get("/titles/{id}", self._get_title),
                web.get(_CONTENT_ROUTE, self._get_content),
                web.get("/titles/{id}/stream", self._get_stream),
                web.get("/titles/{id}/blocks", self._get_blocks),
                web.get("/titles/{id}/torrent", self._get_torrent),
                web.get("/torrents/{info_hash}.torrent", self._get_torrent_by_hash),
                web.get("/status", self._get_status),
                web.get("/metrics", self._get_metrics),
                web.get("/healthz", self._get_health),
            ]
        )
        return app

    # -- what happened -----------------------------------------------------------------------------

    def _note(self, request: web.BaseRequest, response: web.StreamResponse, seconds: float) -> None:
        """Count an answer, and have it logged."""
        self._note_request(request, response.status, _body_bytes(request, response), seconds)

    def _note_gone(self, request: web.Request, seconds: float) -> None:
        """The same where the client left before the end."""
        self._note_request(request, _CLIENT_GONE, _body_bytes(request, None), seconds)

    def _note_request(
        self, request: web.BaseRequest, status: int, sent: int, seconds: float
    ) -> None:
        self._counts.answered(request.get(ROUTE, ""), status, sent)
        if self._access_log is None:
            return
        entry = AccessEntry(
            at=time.time(),
            peer=request.remote or "",
            method=request.method,
            target=_SIGNATURE.sub("sig=-", request.raw_path),  # a log is no place for links
            version=f"HTTP/{request.version.major}.{request.version.minor}",
            status=status,
            sent_bytes=sent,
            seconds=seconds,
            referer=request.headers.get(hdrs.REFERER, ""),
            agent=request.headers.get(hdrs.USER_AGENT, ""),
        )
        self._access_log.note(entry)

    def _note_fast(self, request: FastRequest, peer: str, sent: int, seconds: float) -> None:
        """The same for the fast path."""
        self._counts.answered(_CONTENT_ROUTE, 206, sent)
        if self._access_log is None:
            return
        fields = request.fields
        entry = AccessEntry(
            at=time.time(),
            peer=peer,
            method="GET",
            target=request.target,
            version="HTTP/1.1",
            status=206,
            sent_bytes=sent,
            seconds=seconds,
            referer=fields.get(b"referer", b"").decode("latin-1"),
            agent=fields.get(b"user-agent", b"").decode("latin-1"),
        )
        self._access_log.note(entry)

    # -- titles ------------------------------------------------------------------------------------

    def _url_of(self, title: Title, part: str) -> str:
        return f"{self.public_url}/titles/{title.id}/{part}"

    def _describe(self, title: Title) -> dict[str, Any]:
        return {
            **title.describe(),
            "torrent": self._url_of(title, "torrent"),
            "content": self._url_of(title, "content"),
            "stream": self._url_of(title, "stream"),
            "blocks": self._url_of(title, "blocks") if title.block_roots else None,
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
        cap = self._streams.cap
        limit = None if cap.cap is None else SendLimit(cap)
        transport = request.transport
        before = getattr(transport, "written", 0)
        try:
            return await send_content(
                request,
                self._store,
                self._title_of(request),
                chunk_bytes=self._settings.chunk_bytes,
                send_timeout=self._settings.send_timeout_seconds,
                pacer=limit,
            )
        finally:
            # What went past aiohttp's writer it does not know of.
            request[WRITTEN] = getattr(transport, "written", 0) - before
            if limit is not None:
                limit.close()

    async def _get_stream(self, request: web.Request) -> web.StreamResponse:
        title = self._title_of(request)
        return await send_stream(request, self._store, title, self._streams, self._settings)

    async def _get_blocks(self, request: web.Request) -> web.StreamResponse:
        title = self._title_of(request)
        timeout = self._settings.send_timeout_seconds
        return await send_blocks(
            request, self._store, title, self._streams.cap, send_timeout=timeout
        )

    async def _get_torrent(self, request: web.Request) -> web.Response:
        return self._torrent_response(self._title_of(request), request)

    async def _get_torrent_by_hash(self, request: web.Request) -> web.Response:
        wanted = request.match_info["info_hash"].lower()
        for title in self._store.titles():
            if title.info_hash == wanted:
                return self._torrent_response(title, request)
        raise web.HTTPNotFound(text="no title has this info-hash: /titles lists those there are\n")

    def _torrent_response(self, title: Title, request: web.Request) -> web.Response:
        disposition = f'attachment; filename="{title.id}.torrent"'  # ids are a-z, 0-9 and "-"
        return web.Response(
            body=self._torrent(title, request.query),
            content_type="application/x-bittorrent",
            headers={"Content-Disposition": disposition},
        )

    # -- what goes on ------------------------------------------------------------------------------

    async def status(self) -> dict[str, Any]:
        """What `/status` says."""
        seconds = time.monotonic() - self._started
        streams = self._streams.admission.statistics()
        # Who was given more to say here says it of all processes: that is what holds.
        return http_status(seconds, self.statistics(), streams) | await self._store_status()

    def samples(self) -> list[Sample]:
        """What `/metrics` says of this process, beside what is in `/status`."""
        return [
            *samples_of_counts(self._counts.snapshot()),
            *self._streams.samples(),
            Sample("vod_egress_waiting", self._streams.cap.waiting),
            Sample("vod_access_log_dropped_total", getattr(self._access_log, "dropped", 0)),
            Sample("vod_loop_lag_seconds", float(self._probe.worst_seconds)),
            Sample("vod_loop_late_total", self._probe.late),
        ]

    def snapshot(self) -> dict[str, Any]:
        """What this process did so far, as another one may sum it up; fit for JSON."""
        http = self.statistics()
        return {
            "bytes_sent": http.bytes_sent,
            "connections": http.connections,
            "accepted": http.accepted,
            "refused": http.refused,
            "streamed_bytes": self._streams.streamed_bytes,
            "dropped": getattr(self._access_log, "dropped", 0),
            "waiting": self._streams.cap.waiting,
            "late": self._probe.late,
            "lag_seconds": self._probe.worst_seconds,
            "answers": self._counts.snapshot(),
        }

    async def _get_status(self, _: web.Request) -> web.Response:
        return web.json_response(await self.status(), dumps=_JSON)

    async def _get_metrics(self, _: web.Request) -> web.Response:
        if self._metrics is not None:
            text = await self._metrics()
        else:
            text = render([*samples_of_status(await self.status()), *self.samples()])
        return web.Response(body=text.encode(), headers={hdrs.CONTENT_TYPE: CONTENT_TYPE})

    async def _get_health(self, _: web.Request) -> web.Response:
        reason = await self._illness()
        if reason is not None:
            raise web.HTTPServiceUnavailable(text=f"{reason}\n", headers={hdrs.RETRY_AFTER: "10"})
        return web.Response(text="ok\n")

    async def _illness(self) -> str | None:
        """Why nothing can be served; None if something can, or if there is nothing to serve."""
        try:
            titles, status = self._store.titles(), await self._store_status()
        except ToastError as error:
            return str(error)
        there = {disk["number"] for disk in status["disks"] if disk["there"]}
        if not titles or any(self._is_whole(title, there) for title in titles):
            return None
        return "no title can be served: of each, a part is on no disk that is there"

    def _is_whole(self, title: Title, there: set[int]) -> bool:
        groups = self._streams.groups_of(title)
        return not any(there.isdisjoint(group) for group in groups)


def _body_bytes(request: web.BaseRequest, response: web.StreamResponse | None) -> int:
    """How much of its body an answer has sent; of one that was cut short, None is enough."""
    sending, written = request.get(SENDING), request.get(WRITTEN)
    if request.method == "HEAD":
        return 0
    if sending is not None:
        return int(sending.sent_bytes)
    if written is not None:  # with the head, which only shows where the body was cut short
        most = None if response is None else response.content_length
        return int(written) if most is None else min(int(written), most)
    return 0 if response is None else int(response.body_length)


def _read_links(settings: ServeSettings) -> LinkPolicy:
    secrets = () if settings.link_secrets is None else read_secrets(settings.link_secrets)
    return LinkPolicy(secrets, required=settings.require_signed)
