"""A real disk: a directory whose files are read, from memory or from the disk itself."""

import contextlib
import errno
import os
from pathlib import Path

import pytest

from tests.conformance.check_disk import check_disk, check_faulty_disk
from vodserver.errors import DiskError
from vodserver.store.disks import RealDisk
from vodserver.store.files import OpenFile
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


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1), (0, len(DATA) + 1), (65536, 256), (65536, 65536), (4096, 5)]
)
def test_it_returns_exactly_what_was_asked_for(disk, offset, length, direct):
    for number in (0, 2):
        whole = bytes([number]) + DATA
        data = disk.read(("t", number), offset, length, direct=direct)
        assert data == whole[offset : offset + length]


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(("offset", "length"), [(0, len(DATA) + 2), (1 << 20, 5)])
def test_reading_past_the_end_fails_and_says_which_file(disk, offset, length, direct):
    for _ in range(2):  # the first opens the file, the second finds it open
        with pytest.raises(DiskError, match="000001 is shorter"):
            disk.read(("t", 1), offset, length, direct=direct)


def test_a_missing_extent_fails(disk):
    with pytest.raises(DiskError, match=r"cannot open .*000009"):
        disk.read(("t", 9), 0, 1)


def test_a_link_is_not_followed_out_of_the_disk(disk, folder):
    extent_path(folder, "t", 5).symlink_to("/etc/hostname")
    with pytest.raises(DiskError, match="cannot open"):
        disk.read(("t", 5), 0, 1)


def test_a_file_that_was_replaced_is_opened_anew(disk, folder):
    assert disk.read(("t", 0), 0, 1) == b"\0"
    path = extent_path(folder, "t", 0)
    path.with_name("new").write_bytes(b"n" * 10)
    path.with_name("new").replace(path)

    assert disk.read(("t", 0), 0, 10) == b"n" * 10
    path.unlink()
    with pytest.raises(DiskError):
        disk.read(("t", 0), 0, 10)


def test_what_was_just_read_is_in_memory_and_what_was_dropped_is_not(folder):
    path = extent_path(folder, "t", 1)
    file = OpenFile(path)
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    dropped = not file.in_memory(0, file.size)
    assert os.pread(file.fd, file.size, 0) == b"\1" + DATA

    assert file.in_memory(0, file.size)
    assert file.in_memory(70_000, 70_001)
    assert file.read_now(5, 10) == DATA[4:9]
    assert not file.in_memory(0, file.size + 1)
    if not dropped:
        pytest.skip("this file system keeps its files in memory: nothing can be dropped from it")


def test_an_empty_file_has_nothing_in_memory(tmp_path):
    (tmp_path / "empty").touch()
    assert not OpenFile(tmp_path / "empty").in_memory(0, 1)


def test_a_file_that_is_opened_again_is_the_same_whatever_its_name_means_now(tmp_path):
    path = tmp_path / "replica"
    path.write_bytes(b"old")
    file = OpenFile(path)
    path.with_name("new").write_bytes(b"new")
    path.with_name("new").replace(path)
    again = file.reopen()
    try:
        assert os.read(again, 10) == b"old"
        assert again != file.fd
    finally:
        os.close(again)


def test_files_are_closed_when_nobody_holds_them(disk, folder):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        for number in range(3):
            disk.read(("t", number), 0, 1)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


class CopyingDisk(RealDisk):
    """What it reads is to be sent from its bytes, and it remembers the last of them."""

    paged = False

    def __init__(self, path):
        super().__init__(path)
        self._kept = {}

    def read(self, extent, offset, length, *, direct=False):
        data = super().read(extent, offset, length, direct=direct)
        self._kept = {(extent, offset + at): data[at:] for at in (0, 5)}
        return data

    def peek(self, extent, offset, length):
        data = self._kept.get((extent, offset))
        return None if data is None or len(data) < length else data[:length]


class FaultyDisk(RealDisk):
    """Every read of it fails as the system's own reads fail."""

    def _read_paged(self, *_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    _read_direct = _read_paged


@pytest.mark.parametrize("kind", [RealDisk, CopyingDisk])
def test_a_disk_keeps_its_promises(kind, tmp_path):
    check_disk(kind, tmp_path)


def test_a_disk_that_breaks_says_so(folder):
    check_faulty_disk(FaultyDisk(folder), ("t", 0))
    check_faulty_disk(RealDisk(folder / "unplugged"), ("t", 0))


def test_a_direct_read_of_the_end_of_an_extent_fills_no_memory(folder):
    """It ends within a page, where the file ends."""
    path = extent_path(folder, "t", 2)
    file = OpenFile(path)
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if file.in_memory(0, 1):
        pytest.skip("this file system keeps its files in memory: nothing can be dropped from it")
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system has no direct reads")
    with contextlib.closing(RealDisk(folder)) as disk:
        assert disk.read(("t", 2), 0, file.size, direct=True) == b"\2" + DATA
    assert not file.in_memory(0, 1)
    assert not file.in_memory(file.size - 1, file.size)
