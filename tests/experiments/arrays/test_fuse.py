"""The kernel's questions about files, and what they are answered; as linux/fuse.h has them."""

import errno
import struct

import pytest

from experiments.arrays.fuse import MOST_BYTES, Folder, ReadRequest, answer, failure

FILES = {"film-0.bin": 1000, "film-7.bin": 2000}
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 4, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT = 25, 26, 27, 28, 29, 36


def ask(kind, body=b"", *, node=1, unique=5):
    return struct.pack("=IIQQIIIHH", 40 + len(body), kind, unique, node, 0, 0, 0, 0, 0) + body


def read(offset, size):
    return struct.pack("=QQIIQII", 0, offset, size, 0, 0, 0, 0)


def told(message, unique=5):
    """The body of a good answer."""
    length, error, number = struct.unpack_from("=IiQ", message)
    assert (length, error, number) == (len(message), 0, unique)
    return message[16:]


@pytest.fixture
def folder():
    return Folder(FILES)


def test_it_says_how_it_wants_to_be_asked(folder):
    body = told(folder.take(ask(INIT, struct.pack("=IIII", 7, 45, 131072, 0xFFFFFFFF))))
    assert len(body) == 64
    major, minor, ahead, flags, background, _, _, _, pages, _ = struct.unpack_from(
        "=IIIIHHIIHH", body
    )
    assert (major, minor, ahead) == (7, 31, 0)
    assert flags == 1 | 1 << 18 | 1 << 22
    assert background > 256
    assert pages * 4096 == MOST_BYTES


def test_the_kernel_may_read_ahead_no_more_than_it_offers():
    folder = Folder(FILES, paged=True, read_ahead=1 << 20)
    body = told(folder.take(ask(INIT, struct.pack("=IIII", 7, 45, 131072, 0))))
    assert struct.unpack_from("=III", body)[2] == 131072


def test_a_file_is_found_by_its_name(folder):
    body = told(folder.take(ask(LOOKUP, b"film-7.bin\0")))
    assert len(body) == 128
    node, _, _, _, _, _, same, size = struct.unpack_from("=QQQQIIQQ", body)
    assert (node, same, size) == (3, 3, 2000)
    assert told(folder.take(ask(GETATTR, node=3)))[16:] == body[40:]


def test_what_is_not_there_is_not_found(folder):
    for message in (ask(LOOKUP, b"film-1.bin\0"), ask(LOOKUP, b"film-0.bin\0", node=2)):
        assert folder.take(message) == failure(5, errno.ENOENT)


def test_the_folder_is_a_folder(folder):
    body = told(folder.take(ask(GETATTR)))
    assert len(body) == 104
    assert struct.unpack_from("=I", body, 16 + 60)[0] & 0o170000 == 0o040000


@pytest.mark.parametrize(("paged", "flags"), [(False, 1), (True, 0)])
def test_the_page_cache_is_passed_by_unless_it_is_wanted(paged, flags):
    body = told(Folder(FILES, paged=paged).take(ask(OPEN, node=2)))
    assert struct.unpack("=QII", body) == (0, flags, 0)


def test_bytes_are_wanted_within_the_file(folder):
    assert folder.take(ask(READ, read(100, 50), node=3)) == ReadRequest(5, 1, 100, 50)
    assert folder.take(ask(READ, read(1900, 500), node=3)) == ReadRequest(5, 1, 1900, 100)
    assert folder.take(ask(READ, read(2000, 500), node=3)) == answer(5)


def test_files_are_listed_as_far_as_there_is_room(folder):
    whole = told(folder.take(ask(READDIR, read(0, 4096))))
    assert whole.count(b"film-") == 2
    assert len(whole) % 8 == 0
    first = told(folder.take(ask(READDIR, read(0, len(whole) - 1))))
    assert first == whole[: len(first)]
    assert b"film-7.bin" not in first
    assert told(folder.take(ask(READDIR, read(1, 4096)))) == whole[len(first) :]
    assert told(folder.take(ask(READDIR, read(2, 4096)))) == b""


def test_what_needs_no_answer_has_none(folder):
    for kind in (FORGET, INTERRUPT, 42):
        assert folder.take(ask(kind)) is None


def test_the_rest_is_answered_or_refused(folder):
    for kind in (RELEASE, RELEASEDIR, FLUSH):
        assert told(folder.take(ask(kind))) == b""
    assert len(told(folder.take(ask(OPENDIR)))) == 16
    assert len(told(folder.take(ask(STATFS)))) == 80
    assert folder.take(ask(SETATTR, node=2)) == failure(5, errno.ENOSYS)
