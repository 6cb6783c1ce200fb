"""A server with one film, which can be slow, break off or lie, and viewers to send there."""

import asyncio
import hashlib
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import aiohttp
import bencode2
import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from experiments.real.client import ClientContext, create_client
from experiments.swarms.scenario import Arrivals, Film, Link, Scenario
from toast.common.timemap import TimeMap

FILM_SECONDS = 0.4
PIECE_BYTES = 16 * 1024
FILM = np.random.default_rng(1).bytes(20 * PIECE_BYTES + 1000)


@dataclass
class Server:
    """Answers like a VoD server.

    Attributes:
        rate: bytes per second, all answers together; None: as fast as may be.
        breaks_after: an answer breaks off after so many bytes; None: none does.
        film: what it sends; the .torrent is that of `FILM`.
        asked: the ranges that it was asked for.
        sent: bytes of film.
    """

    rate: float | None = None
    breaks_after: int | None = None
    film: bytes = FILM
    asked: list[str] = field(default_factory=list)
    sent: int = 0
    url: str = ""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def app(self):
        app = web.Application()
        app.add_routes(
            [
                web.get("/titles/1", self.title),
                web.get("/titles/1/torrent", self.torrent),
                web.get("/titles/1/content", self.content),
            ]
        )
        return app

    async def title(self, _):
        return web.json_response({"torrent": f"{self.url}/titles/1/torrent"})

    async def torrent(self, _):
        pieces = (FILM[at : at + PIECE_BYTES] for at in range(0, len(FILM), PIECE_BYTES))
        info = {
            b"length": len(FILM),
            b"name": b"film.bin",
            b"piece length": PIECE_BYTES,
            b"pieces": b"".join(hashlib.sha1(piece).digest() for piece in pieces),
        }
        torrent = {
            b"info": info,
            b"toast": TimeMap.constant(len(FILM), FILM_SECONDS).to_bencodable(),
            b"url-list": [f"{self.url}/titles/1/content".encode()],
        }
        return web.Response(body=bencode2.bencode(torrent))

    async def content(self, request):
        self.asked.append(request.headers["Range"])
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers["Range"]).groups()
        start, end = int(first), int(last) + 1 if last else len(FILM)
        headers = {
            "Content-Range": f"bytes {start}-{end - 1}/{len(FILM)}",
            "Content-Length": str(end - start),
        }
        answer = web.StreamResponse(status=206, headers=headers)
        await answer.prepare(request)
        for at in range(start, end, 4096):
            if self.breaks_after is not None and at - start >= self.breaks_after:
                request.transport.close()
                return answer
            data = self.film[at : min(at + 4096, end)]
            if self.rate is not None:
                async with self.turn:
                    await asyncio.sleep(len(data) / self.rate)
            await answer.write(data)
            self.sent += len(data)
        return answer


@pytest.fixture
async def server():
    server = Server()
    async with TestServer(server.app()) as running:
        server.url = str(running.make_url("")).rstrip("/")
        yield server


@pytest.fixture
async def make_viewer(tmp_path):
    """A viewer of the film at a server, not yet arrived."""
    async with AsyncExitStack() as stack:

        async def make(client, source, **changes):
            scenario = Scenario(
                client=client,
                film=Film(
                    bit_rate_bps=len(FILM) * 8 / FILM_SECONDS,
                    duration_seconds=FILM_SECONDS,
                    piece_bytes=PIECE_BYTES,
                ),
                viewers=1,
                arrivals=Arrivals(spacing_seconds=0.0),
                links=(Link(upload_bps=8e6, download_bps=changes.pop("download_bps", None)),),
                **changes,
            )
            http = await stack.enter_async_context(aiohttp.ClientSession())
            return create_client(
                ClientContext(
                    scenario=scenario,
                    viewer=scenario.crowd()[0],
                    source=source,
                    listen_host="127.0.0.1",
                    folder=tmp_path / "viewer",
                    http=http,
                    began_at=asyncio.get_running_loop().time(),
                    rng=np.random.default_rng(1),
                )
            )

        yield make
