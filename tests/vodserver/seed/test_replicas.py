"""Verified files, held open."""

import os
import resource
from pathlib import Path

import pytest

from vodserver.seed.replicas import Holder, Stamp, raise_file_limit


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "extent"
    path.write_bytes(b"verified")
    return path


@pytest.fixture
def held(path):
    holder = Holder(1)
    replica = holder.hold(3, path, Stamp.of(path))
    yield replica
    holder.release(replica)


def test_a_held_replica_is_read_through_its_descriptor(held, path):
    assert Path(held.target).read_bytes() == b"verified"
    assert held.is_unchanged()
    assert not held.is_deleted()


def test_it_is_readable_when_its_file_is_deleted(held, path):
    path.unlink()

    assert Path(held.target).read_bytes() == b"verified"
    assert held.is_unchanged()
    assert held.is_deleted()


@pytest.mark.parametrize("data", [b"verif", b"VERIFIED"])
def test_a_file_that_shrinks_or_is_written_to_is_changed(held, path, data):
    with path.open("r+b") as file:
        file.truncate(len(data))
        file.write(data)
    os.utime(path, ns=(0, held.stamp.changed + 1))

    assert not held.is_unchanged()


def test_another_file_of_the_same_name_is_not_what_was_verified(path, tmp_path):
    stamp = Stamp.of(path)
    (tmp_path / "other").write_bytes(b"verified")
    (tmp_path / "other").rename(path)
    holder = Holder(1)

    assert holder.hold(0, path, stamp) is None
    assert holder.held == 0


def test_a_missing_file_is_not_held(tmp_path, path):
    assert Holder(1).hold(0, tmp_path / "no", Stamp.of(path)) is None


def test_beyond_the_limit_files_are_found_by_their_path(path):
    holder = Holder(1)
    first, second = (holder.hold(0, path, Stamp.of(path)) for _ in range(2))

    assert (first.file is None, second.file, second.target) == (False, None, str(path))
    assert holder.held == 1
    path.unlink()
    assert (first.is_unchanged(), second.is_unchanged()) == (True, False)
    for each in (first, second):
        holder.release(each)
    assert holder.held == 0


def test_released_descriptors_are_closed(path):
    holder = Holder(1)
    held = holder.hold(0, path, Stamp.of(path))
    file = held.file
    holder.release(held)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


def test_the_limit_of_the_process_is_raised_and_never_exceeded():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, before[1]))
        most = raise_file_limit(1000, 50)
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

        assert soft >= min(before[1], 2 * most + 50) > 1000
        assert raise_file_limit(10**9, 50) * 2 + 50 <= before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
