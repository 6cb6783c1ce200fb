"""A worker: a process that serves HTTP, for the main process at the other end of its channel.

    python -m vodserver.workers.process FD COUNTS

FD is one end of a socket pair, COUNTS are the main process's counts of reads. The worker ends when
the channel does.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from typing import Any, Final

from toast.common.errors import ToastError, UsageError
from toast.common.eventloop import new_loop
from vodserver.errors import ChannelError
from vodserver.http import HttpServer
from vodserver.interpreter import settle_interpreter
from vodserver.store.dispatched import Dispatched
from vodserver.store.held import held_share
from vodserver.store.memory import raise_open_files_limit
from vodserver.workers.channel import Answer, Channel
from vodserver.workers.remote import RemoteGate, RemoteStore
from vodserver.workers.terms import Terms, paths_from_json

__all__ = ["Worker", "main"]

_COUNTS_SECONDS: Final = 0.25
_ORPHAN_SECONDS: Final = 1.0
"""What goes on gets so long to end when the main process has died."""


class Worker:
    """Serves HTTP, and hears the main process.

    Args:
        channel: to the main process.
        dispatched: counts of the reads that it gives its disks.
    """

    def __init__(self, channel: Channel, dispatched: Dispatched) -> None:
        self._channel = channel
        self._dispatched = dispatched
        self._terms: asyncio.Future[Terms] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._store: RemoteStore | None = None
        self._http: HttpServer | None = None

    def stop(self) -> None:
        """End, and let what goes on come to its end before."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until told to stop, or until the main process is gone."""
        gone = asyncio.create_task(self._channel.closed.wait())
        asked = asyncio.create_task(self._stop.wait())
        ends = {gone, asked}
        try:
            first: set[asyncio.Future[Any]] = {self._terms, *ends}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not self._terms.done():
                return
            if self._store is None:
                return
            try:
                await self._start(self._store, self._terms.result())
            except ToastError as error:
                self._fail(error)
                return
            telling = asyncio.create_task(self._tell_counts())
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            telling.cancel()
            await self._close()
        finally:
            for task in ends:
                task.cancel()
            await self._channel.close()

    async def asked(self, what: str, _: dict[str, Any]) -> Answer:
        """The main process asks nothing.

        Raises:
            ChannelError: always.
        """
        raise ChannelError(f"a worker cannot be asked for '{what}'")

    def told(self, what: str, args: dict[str, Any]) -> None:
        """Hear news.

        Raises:
            ChannelError: there is no such news.
        """
        if what == "terms":
            terms = Terms.from_json(args)
            # Read here: whatever changes later is news that comes after this.
            try:
                self._store = RemoteStore(
                    terms.store,
                    disks=terms.disks,
                    bad=set(terms.bad),
                    dispatched=self._dispatched,
                    channel=self._channel,
                )
            except ToastError as error:
                self._fail(error)
            self._terms.set_result(terms)
            return
        if self._store is None:
            return  # it could not be opened, and we are about to end
        match what:
            case "title":
                self._store.renew(args["id"])
            case "bad":
                self._store.distrust(args["folder"], args["extent"], args["disk"])
            case "disks":
                self._store.set_disks(paths_from_json(args["disks"]))
            case "reload" if self._http is not None:
                self._http.reload()
            case "stop":
                self.stop()
            case _:
                raise ChannelError(f"the main process tells '{what}', which means nothing")

    def _fail(self, error: ToastError) -> None:
        usage = isinstance(error, UsageError)
        self._channel.tell("failed", message=str(error), usage=usage)

    async def _start(self, store: RemoteStore, terms: Terms) -> None:
        store.hold_at_most(held_share(terms.settings.held_bytes))
        self._http = HttpServer(
            store,
            terms.settings,
            status=self._status,
            metrics=self._metrics,
            gatekeeper=RemoteGate(self._channel),
            reuse_port=True,
        )
        await self._http.start()
        http = self._http
        settle_interpreter()
        self._channel.tell(
            "listening", address=http.address, url=http.url, public_url=http.public_url
        )

    async def _close(self) -> None:
        assert self._http is not None
        assert self._store is not None
        orphaned = self._channel.closed.is_set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ORPHAN_SECONDS if orphaned else None):
                await self._http.close()
        self._tell()
        self._store.close()

    async def _tell_counts(self) -> None:
        while True:
            await asyncio.sleep(_COUNTS_SECONDS)
            self._tell()

    def _tell(self) -> None:
        assert self._http is not None
        assert self._store is not None
        self._channel.tell("counts", counts=self._http.snapshot())
        self._store.tell_resident()

    async def _status(self) -> dict[str, Any]:
        assert self._http is not None
        result, _ = await self._channel.ask("status", counts=self._http.snapshot())
        status: dict[str, Any] = result["status"]
        return status

    async def _metrics(self) -> str:
        assert self._http is not None
        result, _ = await self._channel.ask("metrics", counts=self._http.snapshot())
        return str(result["text"])


async def _serve(end: socket.socket, dispatched: Dispatched) -> None:
    channel = await Channel.open(end)
    worker = Worker(channel, dispatched)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    channel.start(worker)
    await worker.run()


def main() -> None:
    """Serve, at the end of a channel whose file descriptor is the first argument."""
    # The main process alone acts on what comes from a terminal, and tells its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.basicConfig(format="vodserver: %(message)s", level=logging.WARNING)
    raise_open_files_limit()
    end = socket.socket(fileno=int(sys.argv[1]))
    dispatched = Dispatched(int(sys.argv[2]))
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(end, dispatched))
        sys.stdout.flush()
        sys.stderr.flush()
        # Not by the ordinary way, which waits for threads: one may hang in a disk that does.
        os._exit(0)


if __name__ == "__main__":
    main()
