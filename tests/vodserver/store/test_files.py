"""Reading a file so that the kernel keeps it in large folios, and holding it in memory."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.store import files
from vodserver.store.files import OpenFile, read_fully

KIB = 1024
DATA = bytes(range(256)) * 4 * 700  # 700 KiB


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("files") / "extent"
    made.write_bytes(DATA)
    return made


@pytest.fixture
def fd(path):
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def asked(monkeypatch):
    """How many bytes each call asked for."""
    sizes = []

    def preadv(fd, buffers, offset, real=os.preadv):
        sizes.append(len(buffers[0]))
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    return sizes


def test_a_first_read_asks_for_little_and_then_for_ever_more(fd, asked):
    into = memoryview(bytearray(len(DATA)))
    assert read_fully(fd, into, 0, len(into), begins=True) == len(DATA)
    assert into == DATA
    assert asked == [16 * KIB, 64 * KIB, 256 * KIB, (700 - 336) * KIB]


def test_what_goes_on_asks_for_all_of_it_at_once(fd, asked):
    into = memoryview(bytearray(500 * KIB))
    assert read_fully(fd, into, 200 * KIB, len(into)) == len(into)
    assert asked == [500 * KIB]


@given(offset=st.integers(0, 720 * KIB), enough=st.integers(0, 720 * KIB), begins=st.booleans())
def test_it_reads_what_there_is(path, offset, enough, begins):
    wanted = DATA[offset : offset + enough]
    into = memoryview(bytearray(enough))
    opened = os.open(path, os.O_RDONLY)
    try:
        count = read_fully(opened, into, offset, enough, begins=begins)
    finally:
        os.close(opened)
    assert into[:count] == wanted


class Refusing:
    """A C library that keeps nothing in memory."""

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(self._real, name)

    def mlock(self, *_):
        return -1


def may_lock(path):
    """Skip where this user may lock no memory at all."""
    file = OpenFile(path)
    path.read_bytes()
    try:
        assert file.hold()
    except OSError as error:
        pytest.skip(f"this user may not lock memory: {error}")
    file.let_go()


def test_what_is_held_is_in_memory_whatever_the_kernel_is_told(path):
    may_lock(path)
    file = OpenFile(path)
    path.read_bytes()

    assert file.hold()
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    assert file.held
    assert file.in_memory(0, len(DATA))
    assert not file.in_memory(0, len(DATA) + 1)
    assert file.read_now(0, len(DATA)) == DATA


def test_what_was_let_go_of_may_leave_memory_again(tmp_path):
    path = tmp_path / "extent"
    path.write_bytes(DATA)
    may_lock(path)
    file = OpenFile(path)
    with path.open("rb") as synced:
        os.fsync(synced.fileno())
    assert file.hold()

    file.let_go()

    assert not file.held
    file.let_go()  # once more does no harm
    assert file.in_memory(0, len(DATA))  # nobody has taken it yet


def test_what_is_not_all_in_memory_is_not_held(path, monkeypatch):
    monkeypatch.setattr(OpenFile, "in_memory", lambda *_: False)
    file = OpenFile(path)
    assert not file.hold()
    assert not file.held


def test_a_refusal_is_told(path, monkeypatch):
    monkeypatch.setattr(files, "_libc", Refusing(files._libc))
    file = OpenFile(path)
    path.read_bytes()
    with pytest.raises(OSError, match="cannot be kept"):
        file.hold()
    assert not file.held
