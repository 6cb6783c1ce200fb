"""Under its name a replica is there whole, or not at all."""

import errno
import os
from pathlib import Path

import pytest

from vodserver.errors import DiskError
from vodserver.store.layout import draft_path, extent_path
from vodserver.store.replicas import FULL, disk_error, is_intact, write_replica
from vodserver.store.sums import sums_of

DATA = bytes(range(256)) * 700
SUMS = sums_of(DATA)


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk" / "extents").mkdir(parents=True)
    return tmp_path / "disk"


def files(disk):
    return sorted(str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file())


def test_a_replica_is_written_whole_and_read_only(disk):
    write_replica(disk, "f", 3, DATA, SUMS)

    path = extent_path(disk, "f", 3)
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o444
    assert files(disk) == ["extents/f/000003"]
    assert is_intact(path, len(DATA), SUMS)


def test_one_that_is_there_is_replaced_only_when_asked(disk):
    write_replica(disk, "f", 3, b"rotten", sums_of(b"rotten"))

    with pytest.raises(DiskError, match="is there already"):
        write_replica(disk, "f", 3, DATA, SUMS)
    assert extent_path(disk, "f", 3).read_bytes() == b"rotten"

    write_replica(disk, "f", 3, DATA, SUMS, replace=True)
    assert extent_path(disk, "f", 3).read_bytes() == DATA


def test_a_reader_of_the_old_one_reads_on(disk):
    """It was renamed over, not written into."""
    write_replica(disk, "f", 3, b"old", sums_of(b"old"))
    with extent_path(disk, "f", 3).open("rb") as reader:
        write_replica(disk, "f", 3, DATA, SUMS, replace=True)
        assert reader.read() == b"old"


def test_what_a_kill_left_of_an_earlier_attempt_is_in_nobody_s_way(disk):
    draft = draft_path(disk, "f", 3)
    draft.parent.mkdir()
    draft.write_bytes(b"half")
    draft.chmod(0o444)

    write_replica(disk, "f", 3, DATA, SUMS)

    assert files(disk) == ["extents/f/000003"]


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
def test_a_failure_leaves_what_was_there(disk, monkeypatch, step):
    write_replica(disk, "f", 3, b"old", sums_of(b"old"))
    fault = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fail(*_):
        raise fault

    monkeypatch.setattr(*((Path, "rename") if step == "rename" else (os, step)), fail)
    with pytest.raises(DiskError, match="is full") as told:
        write_replica(disk, "f", 3, DATA, SUMS, replace=True)

    assert told.value.errno in FULL
    assert files(disk) == ["extents/f/000003"]
    assert extent_path(disk, "f", 3).read_bytes() == b"old"


def test_a_disk_that_does_not_return_what_was_written_is_found_out(disk):
    with pytest.raises(DiskError, match="does not return what was written"):
        write_replica(disk, "f", 3, DATA, sums_of(DATA[:-1] + b"!"))
    assert files(disk) == []


def test_a_disk_that_is_away_is_one_clear_line(tmp_path):
    with pytest.raises(DiskError, match="nowhere failed: No such file"):
        write_replica(tmp_path / "nowhere", "f", 3, DATA, SUMS)


@pytest.mark.parametrize("content", [None, b"", DATA[:-1], DATA + b"x", b"x" + DATA[1:]])
def test_what_is_missing_short_long_or_rotten_is_not_intact(tmp_path, content):
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)

    assert not is_intact(path, len(DATA), SUMS)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "is full: free some space"),
        (errno.EDQUOT, "is full: free some space"),
        (errno.EROFS, "cannot be written to: Read-only"),
        (errno.EACCES, "cannot be written to: Permission denied"),
        (errno.EIO, "failed: Input/output error"),
    ],
)
def test_what_a_disk_says_is_told_with_what_to_do(number, message):
    told = disk_error(Path("/mnt/a"), OSError(number, os.strerror(number)))

    assert str(told).startswith("the disk /mnt/a ")
    assert message in str(told)
