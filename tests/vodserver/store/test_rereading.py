"""A replica rots, is evicted and read again: for a moment its bytes are in memory, not yet judged.

Whoever asks in that moment, in this process or in a worker, must not be given them.
"""

import asyncio
import threading

import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.workers.conftest import drop_caches, join, staff  # noqa: F401 - fixtures
from vodserver.store.disks import RealDisk
from vodserver.store.files import OpenFile

SECONDS = 10.0


class Hesitant(RealDisk):
    """A disk whose reads, when told to, are done but not yet handed over."""

    hesitates = False

    def __init__(self, path):
        super().__init__(path)
        self.done = threading.Event()
        self.go = threading.Event()

    def read(self, extent, offset, length, *, direct=False):
        data = super().read(extent, offset, length, direct=direct)
        if self.hesitates:
            self.done.set()
            assert self.go.wait(SECONDS)
        return data


@pytest.fixture
def hesitant(home):
    """The store over hesitant disks, opened: `store, disks = hesitant`."""
    disks = []

    def make(path):
        disks.append(Hesitant(path))
        return disks[-1]

    with home.open(make_disk=make) as store:
        yield store, disks
        for disk in disks:
            disk.go.set()


def rot_silently(home, monkeypatch):
    """Extent 0 rots on all its disks, leaves memory, and no time of any file tells of it."""
    files = [home.replica(0, copy) for copy in range(2)]
    for path in files:
        flip_byte(path, 50)
    drop_caches(*files)
    if OpenFile(files[0]).in_memory(0, 4096):
        pytest.skip("this file system keeps its files in memory: nothing can be dropped from it")
    monkeypatch.setattr(OpenFile, "stamp", lambda file: file.opened_stamp)


async def read_half_way(store, disks, title):
    """A read of extent 0 that has brought it into memory and is not judged yet."""
    for disk in disks:
        disk.hesitates = True
    reading = asyncio.ensure_future(store.fetch(title, 0, 1000))
    async with asyncio.timeout(SECONDS):
        while not any(disk.done.is_set() for disk in disks):  # noqa: ASYNC110 - threads wake nobody
            await asyncio.sleep(0.001)
    return reading


async def end(reading, disks):
    for disk in disks:
        disk.hesitates = False
        disk.go.set()
    await asyncio.wait({reading})
    reading.exception()


async def test_what_is_not_judged_yet_is_not_ready(hesitant, home, monkeypatch):
    store, disks = hesitant
    title = store.titles()[0]
    first = await store.fetch(title, 0, 1000)
    assert store.ready(title, 0, 1000) is not None
    rot_silently(home, monkeypatch)

    reading = await read_half_way(store, disks, title)
    assert first.file.in_memory(0, 1000) or store.ready(title, 0, 1000) is None
    ready = store.ready(title, 0, 1000)
    await end(reading, disks)

    assert ready is None


async def test_nor_is_it_in_a_worker(hesitant, home, staff, monkeypatch):  # noqa: F811 - the fixture
    store, disks = hesitant
    at = await staff(store)
    title = at.remote.title("clock")
    await at.remote.fetch(title, 0, 1000)
    assert at.remote.ready(title, 0, 1000) is not None
    rot_silently(home, monkeypatch)

    reading = await read_half_way(store, disks, title)
    ready = at.remote.ready(title, 0, 1000)
    await end(reading, disks)

    assert ready is None


async def test_every_read_is_counted_before_its_disk_hears_of_it(make):
    rig = make(disks=1)
    reading = rig.ask(0)
    await rig.disks[0].entered()
    assert rig.begun == [(("t", 0), 0)]
    rig.disks[0].open()
    await reading
    await rig.settle()
