"""The daemon as a whole: lock, state, swarm session, films and door, opened and closed in order."""

import asyncio
import ipaddress
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import aiohttp
from aiohttp import web

from toast.common.errors import ToastError
from toast.daemon.api import Api
from toast.daemon.auth import Token
from toast.daemon.errors import StateError
from toast.daemon.events import Events
from toast.daemon.intake import WatchFolder
from toast.daemon.library import Library
from toast.daemon.lock import StateLock
from toast.daemon.notify import Notifier
from toast.daemon.settings import DaemonSettings
from toast.daemon.state import open_state, write_safely
from toast.gateway import AccessRules, Door, FilmRoutes, GatewaySettings, install_guard
from toast.swarm import SessionSettings, SwarmSession
from toast.swarm.metainfo import MAX_METAINFO_BYTES
from toast.web import add_page

__all__ = ["Service", "local_zone"]

_STILL_SECONDS = 60.0
"""Without a look at the films for so long, the daemon counts as hanging."""


class Service:
    """A running daemon. Use as an async context manager, and `run` it inside.

    Args:
        settings: fixed ones.
        session: of the BitTorrent side.
        rules: settings given at the start; they win over remembered ones.

    Attributes:
        url: where it is reached, once entered.
        notices: what a person should know about its start.
        peers_port: where other viewers reach it, once entered.
        library: its films, once entered.
        token: its token, once entered.
    """

    def __init__(
        self,
        settings: DaemonSettings,
        session: SessionSettings,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = settings
        self._session_settings = session
        self._rules = rules or {}
        self._stack = AsyncExitStack()
        self._notifier = Notifier()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> None:
        settings = self.settings
        stack.enter_context(StateLock(settings.state))
        state = await asyncio.to_thread(open_state, settings.state)
        stack.callback(state.close)
        self.token = Token(settings.state)
        session = SwarmSession(self._session_settings)
        stack.push_async_callback(session.close)
        await session.wait_listening()
        http = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=96, limit_per_host=48),
                headers={"User-Agent": "Toast/0.1", "Accept-Encoding": "identity"},
                auto_decompress=False,  # bytes are bounded as they come, not as they unfold
            )
        )
        self.library = Library(state, settings, session=session, http=http, zone=local_zone())
        stack.push_async_callback(self.library.close)
        await self.library.open(self._rules)
        self.notices = self.library.notices
        self.peers_port = session.port
        await self._open_door(stack, session.port)

    async def _open_door(self, stack: AsyncExitStack, peers_port: int) -> None:
        settings = self.settings
        application = self._application = web.Application(client_max_size=MAX_METAINFO_BYTES + 1024)
        gateway = GatewaySettings(max_connections=settings.most_connections)
        secret = self.token.film_key("").encode()
        routes = FilmRoutes(self.library, secret=secret, settings=gateway)
        self._api = Api(
            self.library,
            token=self.token,
            routes=routes,
            peers_port=peers_port,
            keyed=not _is_loopback(settings.host),
            is_alive=self._is_alive,
        )
        install_guard(application, AccessRules(settings.host))
        self._api.add_to(application)
        add_page(application)
        routes.add_to(application)
        door = Door(application, host=settings.host, port=settings.port, settings=gateway)
        await door.start()
        stack.push_async_callback(door.close)
        stack.callback(self._api.events.close)
        self.url = door.url
        # For clients on this machine: which address belongs to this state.
        write_safely(settings.state / "url", f"{door.url}\n".encode())

    @property
    def events(self) -> Events:
        """What its subscribers are told."""
        return self._api.events

    def routes(self) -> Iterable[web.AbstractRoute]:
        """Every route of its HTTP side."""
        return self._application.router.routes()

    def _is_alive(self) -> bool:
        return time.monotonic() - self.library.looked_at < _STILL_SECONDS

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Do the daemon's work until cancelled.

        Args:
            ready: called when it has begun.

        Raises:
            ToastError: it cannot go on.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.library.run())
                tasks.create_task(self._api.events.run())
                tasks.create_task(self._feed_watchdog())
                if self.settings.watch is not None:
                    folder = WatchFolder(self.settings.watch, self.library.add, self.library.notice)
                    tasks.create_task(folder.run())
                self._notifier.send("READY=1", f"STATUS=serving {self.url}")
                ready()
        except BaseExceptionGroup as group:  # not except*: it wraps what is raised inside it
            known, unknown = group.split(ToastError)
            if known is None or unknown is not None:
                raise
            raise known.exceptions[0] from None
        finally:
            self._notifier.send("STOPPING=1")

    async def _feed_watchdog(self) -> None:
        """Tell systemd that the event loop turns; silence makes it start us anew."""
        if self._notifier.watchdog_seconds is None:
            return
        while True:
            if self._is_alive():
                self._notifier.send("WATCHDOG=1")
            await asyncio.sleep(self._notifier.watchdog_seconds / 3)


def local_zone() -> tzinfo:
    """The time zone of this machine, with its rules; UTC where there is none.

    Raises:
        StateError: the environment names one that does not exist.
    """
    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        if name:
            return ZoneInfo(name)
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file, "local")
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise StateError(f"there is no time zone '{name}': set TZ to one such as UTC") from error
    except OSError:
        return UTC


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
