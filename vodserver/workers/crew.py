"""The workers of a server: started, kept alive, told what happens, and ended."""

import asyncio
import contextlib
import itertools
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

from toast.common.errors import ToastError
from vodserver.errors import ServeError, ServeUsageError
from vodserver.http.status import SeedStatus
from vodserver.http.stream import check_settings
from vodserver.settings import ServeSettings
from vodserver.store import Store
from vodserver.store.events import (
    DiskChanged,
    ReplicaBad,
    StoreEvent,
    TitleAdded,
    TitleChanged,
    TitleRemoved,
)
from vodserver.workers.channel import Channel
from vodserver.workers.office import Desk, Office
from vodserver.workers.port import HeldPort
from vodserver.workers.terms import Terms, paths_to_json, share_of

__all__ = ["Crew"]

_START_SECONDS: Final = 30.0
_SLACK_SECONDS: Final = 1.5
"""Beyond what connections get to end: for the worker to end itself."""

_SILENT_SECONDS: Final = 30.0
"""A worker that tells nothing for so long hangs: it has to tell its counts four times a second."""

_LEAST_PAUSE_SECONDS: Final = 0.1
_MOST_PAUSE_SECONDS: Final = 10.0
_GOOD_SECONDS: Final = 10.0
"""A worker that lived so long is not blamed for the next one's end."""

_LISTEN_SECONDS: Final = 1.0
"""So often it is seen whether a worker told something."""

_MOST_BAD: Final = 10_000
"""Bad replicas that a new worker is told of: a message has room for so many."""

_CHANGED_SECONDS: Final = 0.05
"""Upkeep moves replica after replica: workers read a title again at most so often."""

_log = logging.getLogger(__name__)


class Crew:
    """Serves a store over HTTP by several processes on one port; used like an `HttpServer`.

    Args:
        store: opened by this process.
        settings: of the server.
        seed_status: asks the seed for its counters.

    Raises:
        ServeUsageError: the settings do not fit together.
    """

    def __init__(
        self, store: Store, settings: ServeSettings, *, seed_status: SeedStatus | None = None
    ) -> None:
        check_settings(settings)
        self._store = store
        self._settings = settings
        self.office = Office(store, settings, seed_status)
        self._port: HeldPort | None = None
        self._members: list[_Member] = []
        self._unsubscribe: Callable[[], None] = _nothing
        self._changed: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.address = ""
        """The IP address that it listens on, once started."""
        self.url = ""
        """Where it listens, once started."""
        self.public_url = ""
        """What viewers reach it as, once started."""

    @property
    def pids(self) -> list[int]:
        """The process numbers of the workers that run."""
        return [member.pid for member in self._members if member.pid is not None]

    async def start(self) -> None:
        """Begin to serve; every worker listens when this returns.

        Raises:
            ServeUsageError: a worker refuses the settings.
            ServeError: the port is taken, the address is not one of this machine's, or no worker
                can be started.
        """
        self._port = HeldPort(self._settings.host, self._settings.port)
        self.office.probe.start()
        self._unsubscribe = self._store.subscribe(self._on_event)
        share = share_of(self._settings, self._settings.workers, self._port.port)
        self._members = [_Member(self, place, share) for place in range(self._settings.workers)]
        try:
            async with asyncio.timeout(_START_SECONDS):
                told = await asyncio.gather(*(member.start() for member in self._members))
        except TimeoutError:
            await self.close()
            raise ServeError(
                f"the workers did not listen within {_START_SECONDS:g} s: is the machine busy?"
            ) from None
        except BaseException:
            await self.close()
            raise
        self.address, self.url = told[0]["address"], told[0]["url"]
        self.public_url = told[0]["public_url"]

    async def close(self) -> None:
        """Have requests under way end, and end the workers."""
        self._unsubscribe()
        self._unsubscribe = _nothing
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.gather(*(member.close() for member in self._members))
        self.office.probe.stop()
        if self._port is not None:
            self._port.close()
            self._port = None

    def reload(self) -> None:
        """Have every worker read certificate and secrets again, and reopen its access log."""
        self._tell("reload")

    def terms(self, settings: ServeSettings) -> Terms:
        """What a worker that starts now is told."""
        return Terms(
            settings=settings,
            store=self._store.path.absolute(),
            disks=self._paths(),
            # Others a worker finds out by itself: nothing is sent that it did not verify.
            bad=frozenset(itertools.islice(self._store.bad_replicas(), _MOST_BAD)),
        )

    def _paths(self) -> dict[int, Any]:
        """The disks that workers may send from; of others the bytes come over the channel."""
        return {
            number: path.absolute()
            for number, path in self._store.disk_paths.items()
            if self._store.is_paged(number)
        }

    def _tell(self, what: str, **args: Any) -> None:
        for member in self._members:
            member.tell(what, **args)

    def _on_event(self, event: StoreEvent) -> None:
        match event:
            case TitleAdded(title) | TitleRemoved(title):
                self._tell("title", id=title.id)
            case TitleChanged(title):
                self._changed.add(title.id)
                if self._timer is None:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(_CHANGED_SECONDS, self._tell_changed)
            case ReplicaBad(title, extent, disk):
                self._tell("bad", folder=title.folder, extent=extent.number, disk=disk)
            case DiskChanged():
                self._tell("disks", disks=paths_to_json(self._paths()))

    def _tell_changed(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, set()
        for title_id in changed:
            self._tell("title", id=title_id)


def _nothing() -> None:
    """No subscription is there to be ended."""


async def _closes(channel: Channel, desk: Desk) -> bool:
    """Wait until a channel is closed; False if it is not, but nobody speaks at its other end."""
    loop = asyncio.get_running_loop()
    heard, at = desk.heard, loop.time()
    while not channel.closed.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN_SECONDS):
                await channel.closed.wait()
        if desk.heard != heard:
            heard, at = desk.heard, loop.time()
        elif loop.time() - at > _SILENT_SECONDS and not channel.closed.is_set():
            return False
    return True


class _Member:
    """One place in the crew: a process, and the next one when it has died."""

    def __init__(self, crew: Crew, place: int, settings: ServeSettings) -> None:
        self.pid: int | None = None
        self._crew = crew
        self._place = place
        self._settings = settings
        self._channel: Channel | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Future[dict[str, Any]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._turn = 0

    async def start(self) -> dict[str, Any]:
        """Start the first process; what it says when it listens.

        Raises:
            ServeError: it cannot serve.
        """
        self._listening = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"worker {self._place}")
        either: set[asyncio.Future[Any]] = {self._listening, self._task}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._listening.done():
            await self._task
            raise ServeError("a worker was stopped before it served")
        return self._listening.result()

    def tell(self, what: str, **args: Any) -> None:
        """Tell the process something, if there is one."""
        if self._channel is not None:
            self._channel.tell(what, **args)

    async def close(self) -> None:
        """End the process, by force if it does not end by itself."""
        self._closing = True
        if self._task is None:
            return
        self.tell("stop")
        if self._channel is None:
            self._task.cancel()  # it waits to start another
        grace = self._settings.shutdown_seconds + _SLACK_SECONDS
        # Its own clean-up ends the process: nothing that was started is left.
        await asyncio.wait({self._task}, timeout=grace)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._listening is not None and self._listening.done():
            self._listening.exception()  # whoever was to be told it is not there any more

    async def _run(self) -> None:
        """Keep a process there."""
        loop = asyncio.get_running_loop()
        pause = _LEAST_PAUSE_SECONDS
        while True:
            began = loop.time()
            try:
                how = await self._run_one()
            except OSError as error:
                how = f"cannot be started: {error.strerror or error}"
            except ToastError as error:
                how = f"cannot be told what to do: {error}"
            assert self._listening is not None
            if self._closing:
                return
            if not self._listening.done():
                self._listening.set_exception(ServeError(f"a worker {how}"))
                return
            if self._listening.exception() is not None:
                return
            pause = (
                _LEAST_PAUSE_SECONDS
                if loop.time() - began >= _GOOD_SECONDS
                else min(pause * 2, _MOST_PAUSE_SECONDS)
            )
            self._crew.office.lost += 1
            _log.warning("a worker %s; another one is started in %.1f s", how, pause)
            await asyncio.sleep(pause)

    async def _run_one(self) -> str:
        """Run one process to its end; how it ended."""
        crew = self._crew
        ours, theirs = socket.socketpair()
        counts = crew._store.dispatched.fd  # noqa: SLF001 - of this module
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # never a module that lies in the directory that we were started in
                    "-m",
                    "vodserver.workers.process",
                    str(theirs.fileno()),
                    str(counts),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), counts),
                    start_new_session=True,  # what a terminal signals is for the main process
                )
            except BaseException:
                ours.close()
                raise
        self._process, self.pid = process, process.pid
        try:
            self._channel = channel = await Channel.open(ours)
            self._turn += 1
            number = self._turn * len(crew._members) + self._place  # noqa: SLF001 - of this module
            desk = Desk(
                crew.office,
                number,
                channel,
                listening=self._on_listening,
                failed=self._on_failed,
            )
            channel.tell("terms", **crew.terms(self._settings).to_json())
            channel.start(desk)
            try:
                if not await _closes(channel, desk):
                    return "says nothing any more"
                async with asyncio.timeout(_SLACK_SECONDS):
                    code = await process.wait()
            except TimeoutError:
                return "does not answer"
            finally:
                self._channel = None
                desk.close()
                await channel.abort()
            return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        finally:
            self.pid = None
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())

    def _on_listening(self, told: dict[str, Any]) -> None:
        if self._listening is not None and not self._listening.done():
            self._listening.set_result(told)

    def _on_failed(self, told: dict[str, Any]) -> None:
        kind: type[ToastError] = ServeUsageError if told["usage"] else ServeError
        if self._listening is not None and not self._listening.done():
            self._listening.set_exception(kind(told["message"]))
        else:
            _log.warning("a worker cannot serve: %s", told["message"])
