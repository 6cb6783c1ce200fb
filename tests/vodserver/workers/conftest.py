"""Both ends of a channel in one loop: a worker's store before the store of the main process."""

import asyncio
import os
import socket
from types import SimpleNamespace

import pytest

from vodserver.settings import ServeSettings
from vodserver.workers.channel import Channel
from vodserver.workers.office import Desk, Office
from vodserver.workers.remote import RemoteGate, RemoteStore


class Silent:
    """Hears everything, and answers nothing."""

    def __init__(self):
        self.heard = []

    async def asked(self, what, args):
        self.heard.append((what, args))
        await asyncio.Event().wait()

    def told(self, what, args):
        self.heard.append((what, args))


@pytest.fixture
async def join():
    """Two joined channels that hear nothing yet: `ours, theirs = await join()`."""
    made = []

    async def make():
        ends = [await Channel.open(end) for end in socket.socketpair()]
        made.extend(ends)
        return ends

    yield make
    for channel in made:
        await channel.close()


@pytest.fixture
async def staff(join):
    """A worker's view of an opened store: `at = await staff(store, **settings)`."""
    made = []

    async def make(store, **settings):
        ours, theirs = await join()
        office = Office(store, ServeSettings(workers=2, **settings), None)
        told = []
        desk = Desk(office, 1, ours, listening=told.append, failed=told.append)
        ours.start(desk)
        theirs.start(Silent())
        remote = RemoteStore(
            store.path,
            disks=dict(store.disk_paths),
            bad=store.bad_replicas(),
            dispatched=store.dispatched,
            channel=theirs,
        )
        made.append(remote)
        gate = RemoteGate(theirs)
        return SimpleNamespace(
            office=office, desk=desk, remote=remote, gate=gate, ours=ours, theirs=theirs, told=told
        )

    yield make
    for remote in made:
        remote.close()


async def heard(channel):
    """Wait until the other end has heard what was told so far."""
    await channel.ask("status", counts={})


def drop_caches(*paths):
    """Have the kernel forget what it has of these files."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def replicas_of(home):
    """Every replica's file."""
    return [
        home.replica(extent.number, copy)
        for extent in home.title.extents
        for copy in range(len(extent.disks))
    ]
