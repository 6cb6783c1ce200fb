"""A real disk: a directory, a thread, a queue."""

import asyncio
import contextlib
import gc
import os
import threading
from pathlib import Path

import pytest

from vodserver.errors import DiskError
from vodserver.store.disks import _OPEN_FILES, RealDisk
from vodserver.store.layout import extent_path

DATA = bytes(range(256)) * 1024


@pytest.fixture
def folder(tmp_path):
    """A disk's directory with extents 0, 1, 2 of title `t`."""
    for number in range(3):
        path = extent_path(tmp_path, "t", number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]) + DATA)
    return tmp_path


@pytest.fixture
def disk(folder):
    with contextlib.closing(RealDisk(folder)) as made:
        yield made


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1), (0, len(DATA) + 1), (1, 256), (4095, 4098), (len(DATA), 1)]
)
async def test_it_returns_exactly_what_was_asked_for(disk, offset, length):
    for number in (0, 2):
        whole = bytes([number]) + DATA
        assert await disk.read(("t", number), offset, length) == whole[offset : offset + length]


@pytest.mark.parametrize(("offset", "length"), [(0, len(DATA) + 2), (len(DATA) + 1, 1), (10**9, 5)])
async def test_reading_past_the_end_fails_and_says_which_file(disk, offset, length):
    for _ in range(2):  # the first opens the file, the second finds it open
        with pytest.raises(DiskError, match="000001 is shorter"):
            await disk.read(("t", 1), offset, length)

    assert disk.statistics().failed_reads == 2
    assert disk.queued_bytes == 0


async def test_a_missing_extent_fails(disk):
    with pytest.raises(DiskError, match=r"cannot open .*000009"):
        await disk.read(("t", 9), 0, 1)


async def test_a_link_is_not_followed_out_of_the_disk(disk, folder, tmp_path):
    extent_path(folder, "t", 5).symlink_to("/etc/hostname")

    with pytest.raises(DiskError, match="cannot open"):
        await disk.read(("t", 5), 0, 1)


def needs_nowait(folder):
    """Skip where the file system cannot tell what is in memory (overlayfs, older tmpfs)."""
    with extent_path(folder, "t", 0).open("rb") as file:
        file.read()
        try:
            os.preadv(file.fileno(), [bytearray(10)], 0, os.RWF_NOWAIT)
        except OSError as error:
            pytest.skip(f"no RWF_NOWAIT on this file system: {error.strerror}")


async def test_a_fault_of_any_kind_fails_the_read_and_not_the_disk(disk):
    disk._blocking_read, original = None, disk._blocking_read
    with pytest.raises(DiskError, match=r"cannot read from .*not callable"):
        await disk.read(("t", 0), 0, 1)

    disk._blocking_read = original
    assert await disk.read(("t", 0), 0, 1) == b"\0"


async def test_what_is_in_memory_costs_the_disk_nothing(disk, folder):
    """The first read opens the file in the thread; from then on memory answers at once."""
    needs_nowait(folder)
    await disk.read(("t", 0), 0, 4096)
    before = disk.statistics()
    reading = disk.read(("t", 0), 0, 4096)

    with pytest.raises(StopIteration) as answered:
        reading.send(None)  # never waits: no loop turn is needed

    assert answered.value.value == (b"\0" + DATA)[:4096]
    after = disk.statistics()
    assert after.resident_reads == before.resident_reads + 1
    assert after.disk_reads == before.disk_reads
    assert after.read_bytes == before.read_bytes + 4096


@pytest.mark.parametrize("change", ["removed", "replaced"])
async def test_a_file_that_was_removed_or_replaced_is_not_read_any_more(disk, folder, change):
    await disk.read(("t", 0), 0, 10)
    path = extent_path(folder, "t", 0)
    if change == "removed":
        path.unlink()
        with pytest.raises(DiskError, match="cannot open"):
            await disk.read(("t", 0), 0, 10)
    else:
        (folder / "new").write_bytes(b"n" * 10)
        (folder / "new").rename(path)
        assert await disk.read(("t", 0), 0, 10) == b"n" * 10


def _descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def stopped(disk):
    """Make the disk's next read wait in its thread; returns the event that lets it go."""
    go = threading.Event()
    original = disk._blocking_read
    reading = []

    def wait(*arguments):
        reading.append(arguments)
        go.wait(10)
        return original(*arguments)

    disk._blocking_read = wait
    return go, reading


async def test_it_makes_one_read_at_a_time_and_counts_what_waits(disk):
    go, reading = stopped(disk)
    tasks = [asyncio.create_task(disk.read(("t", n), 0, 100 * (n + 1))) for n in range(3)]
    await asyncio.sleep(0)

    assert disk.queued_bytes == 600
    assert len(reading) <= 1

    go.set()
    results = await asyncio.gather(*tasks)

    assert [len(data) for data in results] == [100, 200, 300]
    assert [extent for extent, *_ in reading] == [("t", 0), ("t", 1), ("t", 2)]
    assert disk.queued_bytes == 0
    assert disk.statistics().disk_reads == 3


async def test_a_read_that_nobody_waits_for_leaves_the_queue(disk):
    go, reading = stopped(disk)
    first = asyncio.create_task(disk.read(("t", 0), 0, 100))
    second = asyncio.create_task(disk.read(("t", 1), 0, 50))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)

    assert disk.queued_bytes == 100

    go.set()
    await first
    await disk.read(("t", 2), 0, 1)  # whatever stood before it is through
    assert [extent for extent, *_ in reading] == [("t", 0), ("t", 2)]


async def test_a_read_that_was_begun_loads_the_disk_until_it_ends(disk):
    """Else a disk that hangs would look idle, and draw every further read."""
    go, reading = stopped(disk)
    hanging = asyncio.create_task(disk.read(("t", 0), 0, 100))
    while not reading:  # noqa: ASYNC110 - the thread that begins knows no event loop
        await asyncio.sleep(0)
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)

    assert disk.queued_bytes == 100

    go.set()
    await disk.read(("t", 1), 0, 1)
    assert disk.queued_bytes == 0


async def test_a_closed_disk_refuses_and_fails_what_waits(folder):
    disk = RealDisk(folder)
    go, _ = stopped(disk)
    waiting = [asyncio.create_task(disk.read(("t", n), 0, 1)) for n in range(2)]
    await asyncio.sleep(0)
    closing = asyncio.get_running_loop().run_in_executor(None, disk.close)
    while not disk._closed:  # noqa: ASYNC110 - the thread that sets it knows no event loop
        await asyncio.sleep(0)
    go.set()
    await closing

    _, second = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(second, DiskError)
    with pytest.raises(DiskError, match="is closed"):
        await disk.read(("t", 0), 0, 1)


async def test_descriptors_are_bounded_and_none_is_left_behind(tmp_path):
    files = _OPEN_FILES + 20
    extent_path(tmp_path, "t", 0).parent.mkdir(parents=True)
    for number in range(files):
        extent_path(tmp_path, "t", number).write_bytes(b"x")
    gc.collect()
    before = _descriptors()
    disk = RealDisk(tmp_path)
    for number in range(files):
        await disk.read(("t", number), 0, 1)

    assert _descriptors() - before <= _OPEN_FILES

    disk.close()
    assert _descriptors() <= before


def test_a_disk_that_never_read_has_no_thread(folder):
    before = threading.active_count()
    disk = RealDisk(folder)

    assert threading.active_count() == before

    disk.close()
