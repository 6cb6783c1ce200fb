"""Reading a file from front to back, so that the kernel keeps it in large folios."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.store.files import read_fully

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
