"""What every `Disk` must do, real or emulated; run by the test of each."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vodserver.errors import DiskError
from vodserver.store.disks import Disk
from vodserver.store.layout import extent_path
from vodserver.store.sums import SUM_SPAN

__all__ = ["check_disk", "check_faulty_disk"]

SIZE = 2 * SUM_SPAN + 1234
"""Two spans and a part that is no whole page."""


def check_disk(make: Callable[[Path], Disk], folder: Path) -> None:
    """Fail where a disk does not keep the promises of `Disk`.

    Args:
        make: makes one over a directory.
        folder: an empty directory.
    """
    films = {("t", 0): os.urandom(SIZE), ("t", 1): os.urandom(SIZE), ("u", 0): b"x"}
    for extent, data in films.items():
        _write(folder, extent, data)
    disk = make(folder)
    assert disk.path == folder
    _check_reads(disk, films)
    _check_refusals(disk, folder)
    _check_files(disk, films, folder)
    _check_replaced(disk, folder)
    _check_nothing_leaks(disk)
    disk.close()
    disk.close()


def check_faulty_disk(disk: Disk, extent: tuple[str, int]) -> None:
    """Fail where a disk that has broken says so in any other way than `Disk` does."""
    for direct in (False, True):
        for _ in range(3):
            with pytest.raises(DiskError) as caught:
                disk.read(extent, 0, 1, direct=direct)
            assert str(caught.value)
            assert "\n" not in str(caught.value)
    assert disk.peek(extent, 0, 1) is None
    disk.close()


def _write(folder: Path, extent: tuple[str, int], data: bytes) -> None:
    path = extent_path(folder, *extent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name("new").write_bytes(data)
    path.with_name("new").replace(path)


def _check_reads(disk: Disk, films: dict[tuple[str, int], bytes]) -> None:
    whole = (0, SIZE)
    parts = [(0, 1), whole, (SUM_SPAN, SUM_SPAN), (2 * SUM_SPAN, 1234), whole, (SUM_SPAN, 5)]
    for direct in (False, True, False):
        for offset, length in parts:
            for extent in (("t", 0), ("t", 1)):  # one after the other: none gets the other's
                data = disk.read(extent, offset, length, direct=direct)
                assert isinstance(data, memoryview)
                assert data == films[extent][offset : offset + length]
        assert disk.read(("u", 0), 0, 1, direct=direct) == b"x"


def _check_refusals(disk: Disk, folder: Path) -> None:
    for direct in (False, True):
        for extent, offset, length in [
            (("t", 0), 0, SIZE + 1),
            (("t", 0), 2 * SUM_SPAN, 1235),
            (("t", 0), 1 << 30, 1),
            (("t", 7), 0, 1),
            (("nobody", 0), 0, 1),
        ]:
            with pytest.raises(DiskError) as caught:
                disk.read(extent, offset, length, direct=direct)
            assert str(folder) in str(caught.value), "which file it was"


def _check_files(disk: Disk, films: dict[tuple[str, int], bytes], folder: Path) -> None:
    extent = ("t", 0)
    if not disk.paged:
        kept = disk.peek(extent, 5, 10)
        assert kept is None or kept == films[extent][5:15]
        return
    assert disk.peek(extent, 0, 1) is None, "the kernel is its memory"
    disk.read(extent, 0, SIZE)
    file = disk.file(extent)
    assert file.size == SIZE
    assert os.pread(file.fd, SIZE, 0) == films[extent]
    assert file.in_memory(0, SIZE), "what it read is in memory"
    with pytest.raises(DiskError):
        disk.file(("t", 7))


def _check_replaced(disk: Disk, folder: Path) -> None:
    """A replica that was repaired, cut or removed is seen as it is now, though it was open."""
    extent = ("t", 1)
    for data in (os.urandom(SIZE), os.urandom(10)):
        disk.read(("t", 1), 0, 1)
        _write(folder, extent, data)
        assert disk.read(extent, 0, len(data)) == data
        with pytest.raises(DiskError):
            disk.read(extent, 0, len(data) + 1)
    os.truncate(extent_path(folder, *extent), 3)
    with pytest.raises(DiskError):
        disk.read(extent, 0, 10)
    extent_path(folder, *extent).unlink()
    with pytest.raises(DiskError):
        disk.read(extent, 0, 1)
    shutil.rmtree(folder / "extents" / "u")
    with pytest.raises(DiskError):
        disk.read(("u", 0), 0, 1)


def _check_nothing_leaks(disk: Disk) -> None:
    opened = Path("/proc/self/fd")
    disk.read(("t", 0), 0, 1, direct=True)
    before = len(list(opened.iterdir()))
    for turn in range(50):
        disk.read(("t", 0), 0, SIZE, direct=bool(turn % 2))
        with pytest.raises(DiskError):
            disk.read(("t", 9), 0, 1)
    assert len(list(opened.iterdir())) <= before + 1
