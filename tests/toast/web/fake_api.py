"""A daemon's interface without a daemon: whatever state a test wants, at once and the same again.

It keeps the same contract towards the page; that the real daemon does so too is shown by
tests/interop/test_web_viewer.py.
"""

import asyncio
import base64
import json
import threading
from pathlib import Path

from aiohttp import web

from toast.web import add_page

SECONDS = 10.0
VTT = """WEBVTT

00:00.000 --> 01:00.000
{text}
"""


def film(number=1, **changes):
    """A film as the daemon describes one."""
    film_id = f"{number:040x}"
    name = changes.pop("name", f"film-{number}.mp4")
    return {
        "id": film_id,
        "name": name,
        "title": f"Film {number}",
        "size_bytes": 858_000_000,
        "duration_seconds": 5400.0,
        "state": "downloading",
        "error": None,
        "position_seconds": 0.0,
        "behaviour": "streaming",
        "priority": 0,
        "added_at": 1_790_000_000 + number,
        "pieces": 400,
        "pieces_have": 100,
        "buffer_seconds": 31.0,
        "down_rate": 412_000.0,
        "up_rate": 198_000.0,
        "neighbours": 7,
        "readers": 1,
        "stalls": 0,
        "bytes_from_peers": 170_000_000,
        "bytes_from_seed": 21_000_000,
        "bytes_from_origin": 23_000_000,
        "offload": 0.79,
        "video_codec": "h264",
        "audio_codec": "aac",
        "width": 1280,
        "height": 720,
        "content_url": f"/films/{film_id}/film.mp4",
        "playlist_url": f"/films/{film_id}/playlist.m3u8",
        "poster_url": f"/films/{film_id}/poster.jpg",
        "subtitles": [],
        "ejected_pieces": 0,
    } | changes


STATUS = {
    "version": "0.1.0",
    "uptime_seconds": 4000.0,
    "films": 1,
    "down_rate": 412_000.0,
    "up_rate": 198_000.0,
    "uploaded_bytes": 1_200_000_000,
    "disk": {
        "used_bytes": 41_000_000_000,
        "quota_bytes": 60_000_000_000,
        "free_bytes": 19_000_000_000,
    },
    "origin_bytes_today": 210_000_000,
    "origin_quota_bytes": None,
    "schedule": {},
}


class FakeDaemon:
    """Serves page and interface from a thread of its own.

    Args:
        content: the file that every film's address gives.
        poster: JPEG of every film.
    """

    def __init__(self, content: Path, poster: bytes = b""):
        self.films: dict[str, dict] = {}
        self.pieces: dict[str, bytes] = {}
        self.positions: list[dict] = []
        self.calls: list[tuple[str, str, dict | bytes | None]] = []
        self.locked = False
        self.refusal: str | None = None
        self.port = 0
        self._content = content
        self._poster = poster
        self._streams: set[web.StreamResponse] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._runner: web.AppRunner | None = None

    def __enter__(self):
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    @property
    def listeners(self):
        """How many event streams are open."""
        return len(self._streams)

    # -- what tests do ----------------------------------------------------------------------------

    def reset(self):
        """As new."""
        self.films, self.pieces, self.positions, self.calls = {}, {}, [], []
        self.locked, self.refusal = False, None

    def start(self):
        """Listen, on the port of the last time."""
        self._run(self._start())

    def stop(self):
        """Go away without a word."""
        self._run(self._stop())

    def start_again(self):
        """Nobody is connected, and it listens elsewhere.

        A page that is closed reports its place once more; that must not reach the next test.
        """
        self.stop()
        self.port = 0
        self.start()

    def put(self, *films):
        """Films are there, or have changed; pages that are open are told."""
        self.films |= {each["id"]: each for each in films}
        self._run(self._tell("films", list(films)))

    def remove(self, film_id):
        """Someone else removes a film."""
        del self.films[film_id]
        self._run(self._tell("removed", {"id": film_id}))

    def put_pieces(self, film_id, sources):
        """Where a film's pieces came from."""
        self.pieces[film_id] = bytes(sources)
        self._run(self._tell("pieces", {"id": film_id, **self._pieces(film_id)}))

    # -- the interface ----------------------------------------------------------------------------

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    async def _start(self):
        app = web.Application(middlewares=[self._gate])
        add_page(app)
        route = app.router
        route.add_get("/api/v1/status", self._status)
        route.add_get("/api/v1/films", self._list)
        route.add_post("/api/v1/films", self._add)
        route.add_patch("/api/v1/films/{id}", self._change)
        route.add_delete("/api/v1/films/{id}", self._remove)
        route.add_post("/api/v1/films/{id}/position", self._position)
        route.add_get("/api/v1/films/{id}/pieces", self._get_pieces)
        route.add_get("/api/v1/events", self._events)
        route.add_get("/films/{id}/poster.jpg", self._get_poster)
        route.add_get("/films/{id}/subtitles/{name}", self._subtitles)
        route.add_get("/films/{id}/{name}", self._film)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self):
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for connection in list(runner.server.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await runner.cleanup()

    @web.middleware
    async def _gate(self, request, handler):
        if self.locked and request.path.startswith("/api/"):
            return web.json_response({"error": "a token is needed"}, status=401)
        return await handler(request)

    async def _status(self, _):
        return web.json_response(STATUS | {"films": len(self.films)})

    async def _list(self, _):
        return web.json_response({"films": list(self.films.values())})

    async def _body(self, request):
        body = None
        if request.content_type == "application/json":
            body = await request.json()
        elif request.can_read_body:
            body = await request.read()
        self.calls.append((request.method, request.path_qs, body))
        return body

    async def _add(self, request):
        await self._body(request)
        if self.refusal is not None:
            return web.json_response({"error": self.refusal}, status=400)
        made = film(len(self.films) + 1)
        self.films[made["id"]] = made
        await self._tell("films", [made])
        return web.json_response(made, status=201)

    async def _change(self, request):
        body = await self._body(request)
        found = self.films[request.match_info["id"]]
        if "paused" in body:
            found["state"] = "paused" if body["paused"] else "downloading"
        return web.json_response(found)

    async def _remove(self, request):
        await self._body(request)
        del self.films[request.match_info["id"]]
        await self._tell("removed", {"id": request.match_info["id"]})
        return web.Response(status=204)

    async def _position(self, request):
        report = await request.json()
        self.positions.append(report)
        found = self.films.get(request.match_info["id"])
        if found is not None:
            found["position_seconds"] = report["position_seconds"]
        return web.Response(status=204)

    def _pieces(self, film_id):
        sources = self.pieces.get(film_id, b"")
        return {"pieces": len(sources), "sources": base64.b64encode(sources).decode()}

    async def _get_pieces(self, request):
        return web.json_response(self._pieces(request.match_info["id"]))

    async def _events(self, request):
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b": hello\n\n")
        self._streams.add(stream)
        try:
            await asyncio.Event().wait()
        finally:
            self._streams.discard(stream)
        return stream

    async def _tell(self, name, data):
        for stream in list(self._streams):
            try:
                await stream.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
            except ConnectionError:
                self._streams.discard(stream)

    async def _get_poster(self, _):
        if not self._poster:
            return web.Response(status=404)
        return web.Response(body=self._poster, content_type="image/jpeg")

    async def _subtitles(self, request):
        text = VTT.format(text=f"Line of {request.match_info['name']}")
        return web.Response(text=text, content_type="text/vtt", charset="utf-8")

    async def _film(self, request):
        if request.match_info["name"].startswith("playlist"):
            return web.Response(text="#EXTM3U\n", content_type="application/vnd.apple.mpegurl")
        if request.match_info["name"].startswith("stuck"):
            await asyncio.Event().wait()
        if request.match_info["name"].startswith("broken"):
            return web.Response(body=b"no film at all", content_type="video/mp4")
        return web.FileResponse(self._content, headers={"Content-Type": "video/mp4"})
