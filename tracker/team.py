"""Starts several workers on one port, starts those anew that end, and ends them all."""

import asyncio
import contextlib
import json
import logging
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from tracker.connection_ids import SECRET_BYTES
from tracker.errors import TrackerError
from tracker.ports import Ports, bind_ports
from tracker.settings import TrackerSettings
from tracker.siblings import SiblingPlace
from tracker.worker import Orders

__all__ = ["Team", "serve_team"]

_LOG: Final = logging.getLogger("tracker")
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.5


class Team:
    """Workers on one port.

    Attributes:
        url: where they listen.
        announce_url: what goes into a torrent as its `announce`.
        udp_announce_url: the same for UDP; None where it is off.
        websocket_url: None: a relay between browsers is one process.
    """

    def __init__(self, settings: TrackerSettings, url: str) -> None:
        self.url = url
        self.announce_url = f"{url}/announce"
        self.udp_announce_url = f"udp{self.announce_url[4:]}" if settings.udp else None
        self.websocket_url: str | None = None
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()

    @property
    def pids(self) -> list[int]:
        """Of those that run."""
        return [process.pid for process in self._processes.values()]

    async def keep(self, orders: Orders, ports: Ports, ready: asyncio.Future[None]) -> None:
        """Keep one worker running until the team stops.

        Args:
            orders: what it must know.
            ports: its own sockets; they stay open here, so that what comes while it is started anew
                waits for it.
            ready: set when it listens for the first time, or to the error for which it cannot.
        """
        number = orders.place.number
        while not self._stopping.is_set():
            process = await self._start(orders, ports)
            self._processes[number] = process
            try:
                if self._stopping.is_set():  # since it was begun to be started
                    return
                error = await self._listens(process)
                if ready.done():
                    if error is not None:
                        _LOG.warning("worker %d cannot be started: %s", number, error)
                elif error is not None:
                    ready.set_exception(TrackerError(error))
                    return
                else:
                    ready.set_result(None)
                await process.wait()
            finally:
                await self._end(process)
                del self._processes[number]
            if not self._stopping.is_set():
                _LOG.warning(
                    "worker %d has ended (%s), and is started anew", number, process.returncode
                )
                await asyncio.sleep(_AGAIN_SECONDS)

    def stop(self) -> None:
        """Nobody is started anew from now on."""
        self._stopping.set()
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()

    def kill(self) -> None:
        """Whoever has not ended by itself is ended."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _start(self, orders: Orders, ports: Ports) -> asyncio.subprocess.Process:
        descriptors = [sock.fileno() for sock in ports.all]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tracker.worker", *map(str, descriptors)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=descriptors,
        )
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(orders.to_json().encode() + b"\n")
            await process.stdin.drain()
        return process

    async def _listens(self, process: asyncio.subprocess.Process) -> str | None:
        """Wait until it listens; why it does not."""
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_SECONDS):
                line = await process.stdout.readline()
        except TimeoutError:
            return f"it did not listen within {_START_SECONDS:.0f} s"
        told = json.loads(line) if line else {}
        if told.get("event") == "listening":
            return None
        return str(told.get("error", "it ended while it started"))

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def serve_team(
    settings: TrackerSettings,
    count: int,
    *,
    films: Path | None = None,
    snapshot: Path | None = None,
    secret: Path | None = None,
    store: str | None = None,
    log: Path | None = None,
) -> AsyncIterator[Team]:
    """Let several processes answer on one port until the block is left.

    Args:
        settings: of every one; limits per address and on connections are each one's own.
        count: how many.
        films: list of the films that are served; None: any.
        snapshot: where the memory is kept over restarts; None: nowhere.
        secret: file of the passkeys' secret; None: anyone is answered.
        store: URL of a store that other trackers use, too.
        log: file for a line of each request, of all of them; None: nowhere.

    Raises:
        TrackerError: they cannot listen, or cannot be started.
    """
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toast-tracker-")))
        first = await bind_ports(settings, shared=True)
        stack.callback(first.close)
        host, port = first.streams[0].getsockname()[:2]
        bound = [first]
        for _ in range(count - 1):
            bound.append(await bind_ports(replace(settings, port=port), shared=True))
            stack.callback(bound[-1].close)
        team = Team(settings, f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        key = secrets.token_bytes(SECRET_BYTES)
        loop = asyncio.get_running_loop()
        keeping: list[asyncio.Task[None]] = []
        ready: list[asyncio.Future[None]] = []
        try:
            for number, ports in enumerate(bound):
                place = SiblingPlace(folder, number, count, key)
                orders = Orders(settings, place, films, snapshot, secret, store, log)
                ready.append(loop.create_future())
                keeping.append(asyncio.create_task(team.keep(orders, ports, ready[-1])))
            await asyncio.gather(*ready)
            yield team
        finally:
            team.stop()
            if keeping:
                await asyncio.wait(keeping, timeout=_STOP_SECONDS)
            team.kill()
            await asyncio.gather(*keeping, return_exceptions=True)
            for each in ready:
                if each.done() and not each.cancelled():
                    each.exception()  # looked at: one of them was raised
