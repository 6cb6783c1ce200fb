"""VoD servers for tests: an honest one that keeps accounts, and one that follows a script."""

import asyncio
import contextlib

from aiohttp import web

from toast.common.ranges import plan_range


class LostSocket:
    """An aiohttp session on an event loop that has lost track of a socket."""

    def get(self, *_args, **_options):
        raise RuntimeError("File descriptor 59 is used by transport <TCPTransport>")


class FilmServer:
    """Serves one film over real HTTP on loopback, and counts what it is asked for.

    Attributes:
        content: the film's bytes as this server has them.
        ranges: [start, end) of every request, in order.
        gate: cleared, answers wait until it is set.
        latency: seconds from a request to its answer, as on a real way to a server.
        hashes: of the film's blocks, at /hashes.
        pause_after: bytes of an answer after which it halts until `gate` is set.
        pause_at: byte of the film before which it does.
    """

    def __init__(self, content: bytes, host: str) -> None:
        self.content = content
        self.ranges: list[tuple[int, int]] = []
        self.documents: dict[str, tuple[str, bytes]] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.latency = 0.0
        self.hashes = b""
        self.pause_after: int | None = None
        self.pause_at: int | None = None
        self._host = host
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def root(self) -> str:
        return f"http://{self._host}:{self._port}"

    @property
    def url(self) -> str:
        """Of the film."""
        return f"{self.root}/film"

    @property
    def payload(self) -> int:
        """Bytes of the film sent."""
        return sum(end - start for start, end in self.ranges)

    async def start(self) -> None:
        """Listen: the first time on any free port, afterwards on the same one."""
        app = web.Application()
        app.router.add_get("/film", self._film)
        app.router.add_get("/hashes", self._hashes)
        app.router.add_get("/{path:.*}", self._document)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Go away: connections are cut, new ones refused."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _hashes(self, request: web.Request) -> web.Response:
        plan = plan_range(request.method, request.headers, length=len(self.hashes), etag='"hash"')
        body = self.hashes[plan.start : plan.end]
        return web.Response(status=plan.status, headers=plan.headers, body=body)

    async def _film(self, request: web.Request) -> web.StreamResponse:
        pauses = self.pause_after is not None or self.pause_at is not None
        if not pauses:
            await self.gate.wait()
        await asyncio.sleep(self.latency)
        plan = plan_range(request.method, request.headers, length=len(self.content), etag='"film"')
        self.ranges.append((plan.start, plan.end))
        if pauses:
            response = web.StreamResponse(status=plan.status, headers=plan.headers)
            await response.prepare(request)
            if self.pause_after is not None:
                middle = plan.start + self.pause_after
            else:
                middle = min(max(plan.start, self.pause_at), plan.end)
            await response.write(self.content[plan.start : middle])
            await self.gate.wait()
            await response.write(self.content[middle : plan.end])
            return response
        return web.Response(
            status=plan.status, headers=plan.headers, body=self.content[plan.start : plan.end]
        )

    async def _document(self, request: web.Request) -> web.Response:
        kind, body = self.documents.get(request.path, ("text/plain", None))
        if body is None:
            raise web.HTTPNotFound
        return web.Response(body=body, content_type=kind)


@contextlib.asynccontextmanager
async def film_server(content: bytes, host: str):
    server = FilmServer(content, host)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class ScriptedServer:
    """Answers every request with the same bytes, whatever is asked; then closes or hangs."""

    def __init__(self, answer: bytes, *, hang: bool = False) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.left = asyncio.Event()
        self._hang = hang
        self._release = asyncio.Event()

    async def start(self, host: str) -> str:
        self._server = await asyncio.start_server(self._serve, host, 0)
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}/film"

    async def _serve(self, reader, writer) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.answer)
            await writer.drain()
            if self._hang:
                await reader.read()  # until the client goes away
                self.left.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()
