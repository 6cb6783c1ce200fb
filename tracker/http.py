"""The tracker on HTTP: `/announce`, `/scrape`, and for its operator `/status` and `/healthz`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from aiohttp import web

from tracker import codec
from tracker.connections import ConnectionGate, peer_address
from tracker.errors import RequestError, TrackerError
from tracker.messages import is_loopback
from tracker.settings import TrackerSettings
from tracker.state import Swarms

__all__ = ["TrackerServer", "serve_tracker"]

_LOG: Final = logging.getLogger("tracker")
_SHUTDOWN_SECONDS: Final = 2.0


@dataclass(slots=True)
class _Counters:
    announces: int = 0
    scrapes: int = 0
    failures: int = 0


class TrackerServer:
    """One tracker that is listening.

    Attributes:
        url: where it listens, such as `http://127.0.0.1:6969`.
    """

    def __init__(self, settings: TrackerSettings, swarms: Swarms) -> None:
        self.url = ""
        self._settings = settings
        self._swarms = swarms
        self._counters = _Counters()
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._gate: ConnectionGate | None = None

    @property
    def announce_url(self) -> str:
        """What goes into a torrent as its `announce`."""
        return f"{self.url}/announce"

    def statistics(self) -> dict[str, float]:
        """What `/status` shows: counters since the start, and what is remembered now."""
        now = self._loop.time()
        self._swarms.expire(now)
        gate = self._gate
        return {
            "announces": self._counters.announces,
            "scrapes": self._counters.scrapes,
            "failures": self._counters.failures,
            "bytes_sent": gate.bytes_sent if gate else 0,
            "connections_open": gate.open if gate else 0,
            "connections_accepted": gate.accepted if gate else 0,
            "connections_refused": gate.refused if gate else 0,
            "connections_timed_out": gate.timed_out if gate else 0,
            "torrents": self._swarms.torrents,
            "peers": self._swarms.peers,
            "uptime_seconds": round(now - self._started, 3),
        }

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=1024)
        app.router.add_get("/announce", self._answer_announce)
        app.router.add_get("/scrape", self._answer_scrape)
        app.router.add_get("/status", self._answer_status)
        app.router.add_get("/healthz", self._answer_health)
        app.on_response_prepare.append(_name_no_versions)
        return app

    def attach(self, gate: ConnectionGate, url: str) -> None:
        """The sockets are open: this is what counts on them, and where they are."""
        self._gate = gate
        self.url = url

    async def _answer_announce(self, request: web.Request) -> web.Response:
        self._counters.announces += 1
        return self._answer(request, self._announce)

    async def _answer_scrape(self, request: web.Request) -> web.Response:
        self._counters.scrapes += 1
        return self._answer(request, self._scrape)

    async def _answer_status(self, _request: web.Request) -> web.Response:
        return web.json_response(self.statistics())

    async def _answer_health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    def _answer(
        self, request: web.Request, make_body: Callable[[bytes, bytes], bytes]
    ) -> web.Response:
        # Status 200 also for a failure: clients read the reason only there (BEP 3 knows no other).
        try:
            body = make_body(self._query(request), _source_address(request))
        except RequestError as error:
            self._counters.failures += 1
            body = codec.encode_failure(str(error))
        except Exception:  # noqa: BLE001  (a defect of ours: its traceback is for the operator)
            _LOG.exception("an answer failed")
            self._counters.failures += 1
            body = codec.encode_failure("the tracker failed to answer; try again later")
        return web.Response(body=body, content_type="text/plain")

    def _query(self, request: web.Request) -> bytes:
        # raw_path, since any decoding would change the bytes of an info_hash; aiohttp reads the
        # request line with surrogateescape.
        query = request.raw_path.partition("?")[2].encode("utf-8", "surrogateescape")
        if len(query) > self._settings.max_query_bytes:
            raise RequestError(f"the query is longer than {self._settings.max_query_bytes} bytes")
        return query

    def _announce(self, query: bytes, source: bytes) -> bytes:
        wish = codec.parse_announce(query)
        # BEP 3's `ip` lets anyone send a swarm at a victim. Only whoever sits on this machine (a
        # seed beside its tracker) may speak for another address.
        address = wish.ip if wish.ip is not None and is_loopback(source) else source
        answer = self._swarms.announce(wish, address, self._loop.time())
        return codec.encode_announce(answer, wish, self._settings)

    def _scrape(self, query: bytes, _source: bytes) -> bytes:
        info_hashes = codec.parse_scrape(query, self._settings.max_scrape_hashes)
        return codec.encode_scrape(self._swarms.scrape(info_hashes, self._loop.time()))


def _source_address(request: web.Request) -> bytes:
    address = peer_address(request.transport) if request.transport is not None else None
    if address is None:
        raise RequestError("the connection is closed")
    return address


async def _name_no_versions(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "toast-tracker"


@asynccontextmanager
async def serve_tracker(settings: TrackerSettings, seed: int) -> AsyncIterator[TrackerServer]:
    """Listen until the block is left.

    Args:
        settings: where to listen, and all limits.
        seed: of the random samples in the answers.

    Raises:
        TrackerError: the address cannot be listened on.
    """
    # aiohttp reports every stranger's garbage as an error with a traceback; ours go to _LOG.
    noise = logging.getLogger("tracker.noise")
    noise.setLevel(logging.CRITICAL + 1)
    server = TrackerServer(settings, Swarms(settings, np.random.default_rng(seed)))
    runner = web.AppRunner(
        server.application(),
        access_log=None,
        keepalive_timeout=settings.idle_timeout_seconds,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        logger=noise,
    )
    await runner.setup()
    try:
        assert runner.server is not None
        gate = ConnectionGate(settings, runner.server)
        try:
            listener = await asyncio.get_running_loop().create_server(
                gate, settings.host, settings.port
            )
        except (OSError, UnicodeError) as error:
            raise TrackerError(
                f"cannot listen on {settings.host}:{settings.port}: {_reason(error)}; "
                "choose another --host or --port"
            ) from error
        try:
            server.attach(gate, _url(listener))
            yield server
        finally:
            listener.close()
    finally:
        await runner.cleanup()


def _reason(error: OSError | UnicodeError) -> str:
    """The system's own words, without the address that asyncio wraps around them."""
    return (getattr(error, "strerror", None) or str(error)).rpartition(": ")[2]


def _url(listener: asyncio.Server) -> str:
    host, port = listener.sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
