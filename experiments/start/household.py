"""The viewer's machine: a warm Toast, and a player beside it. Runs in the viewer's host.

Reads one JSON object per line from standard input. A `plain` one has the player read a URL; a
`toast` one opens a film anew (a fresh session, fresh connections, an empty folder) and has the
player read it through the gateway; both are answered with a line when the picture is there.
Everything is imported and the player is running before: what is timed begins at "open", with the
.torrent in hand.
"""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import aiohttp
import numpy as np

from toast.common.errors import ToastError
from toast.gateway import Gateway
from toast.swarm import SessionSettings, SwarmSession
from toast.viewer import (
    Behaviour,
    FilmReader,
    Viewer,
    ViewerSettings,
    assemble_viewer,
    resolve_source,
)
from toast.viewer.attendance import Pace

__all__ = ["Household"]

_LINE_BYTES: Final = 1 << 20
_FFMPEG_SECONDS: Final = 60.0


class Household:
    """What runs on the viewer's machine.

    Args:
        listen: its own address, at which peers reach it.
        folder: for films; each viewing has one of its own in it.
    """

    def __init__(self, listen: str, folder: Path) -> None:
        self._listen = listen
        self._folder = folder
        self._player: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the player."""
        self._player = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "experiments.start.reader"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
        )

    async def close(self) -> None:
        """End the player."""
        if self._player is not None and self._player.stdin is not None:
            self._player.stdin.close()
            await self._player.wait()

    async def plain(self, request: dict[str, Any]) -> dict[str, Any]:
        """The player reads from the server."""
        opened_at = time.monotonic()
        read = await self._show(request["url"], request)
        return {"opened_at": opened_at, "reading": read}

    async def toast(self, request: dict[str, Any]) -> dict[str, Any]:
        """The player reads through a viewing that begins now; and seeks, if asked to."""
        marks: dict[str, float] = {}
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        # As in the daemon, where it is there before any film: but it has met nobody yet.
        session = SwarmSession(SessionSettings(listen_host=self._listen))
        try:
            async with self._http() as http:
                await session.wait_listening()
                opened_at = time.monotonic()
                source = await resolve_source(request["torrent"], http=http, session=session)
                viewer = assemble_viewer(
                    source,
                    settings=ViewerSettings(
                        folder=folder,
                        behaviour=Behaviour.SEEDING,
                        start_seconds=request["seconds"],
                        pace=Pace.READERS,
                    ),
                    session=session,
                    http=http,
                    rng=np.random.default_rng(request["seed"]),
                )
                await viewer.open()
                marks["opened"] = time.monotonic()
                async with Gateway(FilmReader(viewer)) as gateway:
                    marks["gateway"] = time.monotonic()
                    running = asyncio.create_task(viewer.run())
                    try:
                        read = await self._show(gateway.url, request)
                        taken = viewer.progress()
                        seeks = [
                            await self._seek(viewer, gateway.url, seek)
                            for seek in request.get("seeks", ())
                        ]
                    finally:
                        viewer.stop()
                        await running
        finally:
            await session.close()
            shutil.rmtree(folder, ignore_errors=True)
        return {
            "opened_at": opened_at,
            "marks": marks,
            "reading": read,
            "taken": _taken(taken),
            "seeks": seeks,
        }

    async def _seek(self, viewer: Viewer, url: str, seek: dict[str, Any]) -> dict[str, Any]:
        """Watch on for a while, then read elsewhere."""
        await asyncio.sleep(seek["after_seconds"])
        before = viewer.progress()
        have = viewer.have.copy()
        asked_at = time.monotonic()
        read = await self._show(url, seek)
        geometry = viewer.metainfo.geometry
        wanted = np.zeros_like(have)
        for _, start, end in seek["steps"]:
            pieces = geometry.pieces_of(start, end)
            wanted[pieces.start : pieces.stop] = True
        return {
            "opened_at": asked_at,
            "reading": read,
            "had": bool(have[wanted].all()),
            "before": _taken(before),
            "taken": _taken(viewer.progress()),
        }

    async def _show(self, url: str, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("ffmpeg"):
            return await _decode(url, request["seconds"])
        player = self._player
        assert player is not None
        assert player.stdin is not None
        assert player.stdout is not None
        words = {"url": url, "steps": request["steps"], "strategy": request["strategy"]}
        player.stdin.write(json.dumps(words).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await player.stdout.readline())
        return answer

    @contextlib.asynccontextmanager
    async def _http(self) -> Any:
        # As `toast watch` makes it.
        connector = aiohttp.TCPConnector(local_addr=(self._listen, 0), limit=48)
        async with aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": "Toast/0.1", "Accept-Encoding": "identity"},
            auto_decompress=False,
        ) as http:
            yield http


async def _decode(url: str, seconds: float) -> dict[str, Any]:
    """How long FFmpeg takes from its start to its end, for one picture."""
    began = time.monotonic()
    seek = ["-ss", f"{seconds:g}"] if seconds else []
    process = await asyncio.create_subprocess_exec(
        *("ffmpeg", "-v", "error", "-nostdin", *seek, "-i", url),
        *("-frames:v", "1", "-f", "null", "-"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_FFMPEG_SECONDS):
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        return {"error": errors.decode(errors="replace").strip()[-200:]}
    now = time.monotonic()
    return {"began": began, "steps": {"frame": now}, "connected": began, "first_byte": began}


def _taken(progress: dict[str, Any]) -> dict[str, Any]:
    names = ("bytes_from_peers", "bytes_from_seed", "bytes_from_origin", "neighbours", "stalls")
    return {name: progress[name] for name in names if name in progress}


async def _serve(household: Household) -> None:
    await household.start()
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    _say({"event": "ready"})
    try:
        while line := await reader.readline():
            request = json.loads(line)
            run = household.toast if request["kind"] == "toast" else household.plain
            try:
                _say({"event": "done", **await run(request)})
            except ToastError as error:
                _say({"event": "done", "error": str(error)})
    finally:
        await household.close()


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer requests until standard input ends."""
    asyncio.run(_serve(Household(sys.argv[1], Path(sys.argv[2]))))


if __name__ == "__main__":
    main()
