"""What can be sent at once: in the kernel's memory, verified, and still the same file."""

import os
import resource
from pathlib import Path

import pytest

from vodserver.errors import DiskError
from vodserver.store.dispatched import Dispatched
from vodserver.store.files import OpenFile
from vodserver.store.memory import Memory, raise_open_files_limit
from vodserver.store.rows import Extent
from vodserver.store.sums import SUM_SPAN, sums_of

KEY = ("t", 0)
SIZE = 3 * SUM_SPAN + 1000
DATA = b"".join(bytes([65 + n]) * SUM_SPAN for n in range(4))[:SIZE]
SUMS = sums_of(DATA)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "replica"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return path


@pytest.fixture
def memory():
    with Dispatched() as dispatched:
        made = Memory(dispatched, 8)
        yield made
        made.clear()


def ready(memory, begin=0, stop=1, disk=0):
    return memory.ready(KEY, disk, begin, stop, Extent(KEY[1], SIZE, (disk,), SUMS))


def touch(path):
    """Have all of a file in memory."""
    path.read_bytes()


def evict(path):
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if OpenFile(path).in_memory(0, SUM_SPAN):
        pytest.skip("this file system keeps its files in memory: nothing can be dropped from it")


def verified(memory):
    return bin(memory._entries[KEY, 0].verified)


def test_what_is_not_open_is_not_ready(memory):
    assert ready(memory) is None
    memory.learn(KEY, 0, 0, SUM_SPAN)
    assert ready(memory) is None
    assert not memory.has(KEY, 0)


def test_what_was_learned_is_ready_and_the_rest_is_verified_when_it_is_asked_for(memory, path):
    touch(path)
    memory.learn(KEY, 0, 0, SUM_SPAN, OpenFile(path))
    assert verified(memory) == "0b1"
    assert ready(memory, 5, 10).size == SIZE
    assert verified(memory) == "0b1"

    assert ready(memory, SUM_SPAN - 1, SUM_SPAN + 1) is not None
    assert verified(memory) == "0b11"
    assert ready(memory, SIZE - 1, SIZE) is not None
    assert verified(memory) == "0b1011"
    assert ready(memory, 0, SIZE) is not None
    assert verified(memory) == "0b1111"


def test_rot_in_memory_is_never_verified(memory, path):
    data = bytearray(DATA)
    data[SUM_SPAN + 7] ^= 1
    path.write_bytes(data)
    memory.learn(KEY, 0, 0, SUM_SPAN, OpenFile(path))

    assert ready(memory, 0, SUM_SPAN) is not None
    with pytest.raises(DiskError, match="checksum"):
        ready(memory, SUM_SPAN - 1, SUM_SPAN + 1)
    assert verified(memory) == "0b1"


def test_what_was_evicted_is_not_ready_and_is_verified_anew(memory, path):
    touch(path)
    memory.learn(KEY, 0, 0, SIZE, OpenFile(path))
    evict(path)

    assert ready(memory, 0, SIZE) is None
    assert verified(memory) == "0b0"
    touch(path)
    assert ready(memory, 0, 10) is not None
    assert verified(memory) == "0b1"


def test_after_a_read_of_it_was_dispatched_nothing_of_a_replica_is_trusted(memory, path):
    """Evicted and read again behind our back: what came is looked at before it is sent."""
    touch(path)
    file = OpenFile(path)
    memory.learn(KEY, 0, 0, SIZE, file)
    evict(path)
    rot_silently(path, file)
    memory._dispatched.note(KEY, 0)
    touch(path)  # as that read does, which is judged later

    with pytest.raises(DiskError, match="checksum"):
        ready(memory, 0, 10)
    assert verified(memory) == "0b0"


def test_what_that_read_then_finds_right_is_trusted_again(memory, path):
    touch(path)
    memory.learn(KEY, 0, 0, SIZE, OpenFile(path))
    memory._dispatched.note(KEY, 0)
    memory.learn(KEY, 0, SUM_SPAN, 2 * SUM_SPAN)

    assert verified(memory) == "0b10"
    assert ready(memory, 0, 10) is not None
    assert verified(memory) == "0b11"


def rot_silently(path, file):
    """Another byte on the disk, and nobody wrote: the file's times are what they were."""
    with path.open("r+b") as writer:
        writer.write(bytes([DATA[0] ^ 1]))
        os.fsync(writer.fileno())
    evict(path)
    stamp = file.opened_stamp
    file.__class__ = type("Rotten", (OpenFile,), {"__slots__": (), "stamp": lambda _: stamp})


def test_sending_has_the_kernel_bring_in_nothing_else(tmp_path):
    """Read-ahead would put bytes into memory that nobody verifies; an ordinary file shows it."""

    brought = []
    for name in ("plain", "ours"):
        path = tmp_path / name
        path.write_bytes(bytes(4_000_000))
        with path.open("rb", buffering=0) as plain:
            os.fsync(plain.fileno())
            evict(path)
            file = OpenFile(path)
            for at in range(0, SUM_SPAN, 4096):
                os.pread(plain.fileno() if name == "plain" else file.fd, 4096, at)
        assert file.in_memory(0, SUM_SPAN)
        brought.append(file.in_memory(SUM_SPAN, SUM_SPAN + 4096))
    if not brought[0]:
        pytest.skip("the kernel reads nothing ahead here")
    assert not brought[1]


@pytest.mark.parametrize("change", ["removed", "replaced", "cut", "written", "linked, replaced"])
def test_a_file_that_changes_under_us_is_never_sent_unverified(memory, path, change):
    touch(path)
    memory.learn(KEY, 0, 0, SIZE, OpenFile(path))
    assert ready(memory) is not None
    rotten = bytes([DATA[0] ^ 1]) + DATA[1:]
    if change == "removed":
        path.unlink()
    elif change == "cut":
        os.truncate(path, 100)
    elif change == "written":
        with path.open("r+b") as file:
            file.write(rotten[:1])
    else:
        if change.startswith("linked"):
            path.with_name("link").hardlink_to(path)
        path.with_name("new").write_bytes(rotten)
        path.with_name("new").replace(path)

    if change == "written":
        with pytest.raises(DiskError, match="checksum"):
            ready(memory)
    elif change == "linked, replaced":
        # The old file is whole; it was looked at again, for its names changed.
        file = ready(memory)
        assert os.pread(file.fd, 10, 0) == DATA[:10]
    else:
        assert ready(memory) is None


def test_what_is_written_to_while_it_is_read_is_not_learned(memory, path):
    touch(path)
    file = OpenFile(path)
    with path.open("r+b") as other:
        other.write(b"!")
    memory.learn(KEY, 0, 0, SIZE, file)

    assert not memory.has(KEY, 0)


def test_a_new_file_takes_the_place_of_one_that_was_replaced(memory, path):
    touch(path)
    memory.learn(KEY, 0, 0, SIZE, OpenFile(path))
    path.with_name("new").write_bytes(DATA)
    path.with_name("new").replace(path)
    fresh = OpenFile(path)
    memory.learn(KEY, 0, SUM_SPAN, 2 * SUM_SPAN, fresh)

    assert ready(memory, SUM_SPAN, SUM_SPAN + 1) is fresh
    assert verified(memory) == "0b10"


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def maps():
    return Path("/proc/self/maps").read_text().count("replica")


def test_the_least_recently_used_replica_is_closed(memory, path):
    touch(path)
    before = open_files()
    for disk in range(8):
        memory.learn(KEY, disk, 0, SIZE, OpenFile(path))
    assert ready(memory, disk=0) is not None
    memory.learn(KEY, 8, 0, SIZE, OpenFile(path))

    assert [memory.has(KEY, disk) for disk in range(9)] == [True, False, *[True] * 7]
    assert open_files() == before + 8
    memory.forget(KEY, 0)
    memory.forget(KEY, 0)
    memory.forget_disk(4)
    assert open_files() == before + 6
    memory.clear()
    assert open_files() == before
    assert maps() == 0


def test_neither_files_nor_maps_leak(memory, path):
    touch(path)
    before = open_files()
    for turn in range(200):
        memory.learn(KEY, turn, 0, SIZE, OpenFile(path))
        assert ready(memory, disk=turn) is not None
    assert open_files() <= before + 8
    assert maps() <= 8


@pytest.mark.parametrize(("soft", "limit"), [(64, 16), (2, 1), (1 << 20, 4096), (-1, 4096)])
def test_replicas_take_a_share_of_the_files_that_may_be_open(monkeypatch, soft, limit):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    with Dispatched() as dispatched:
        assert Memory(dispatched)._limit() == limit
        assert Memory(dispatched, 7)._limit() == 7


@pytest.mark.parametrize(
    ("have", "wanted"),
    [((64, 128), (128, 128)), ((64, -1), (-1, -1)), ((128, 128), None), ((-1, -1), None)],
)
def test_the_limit_of_open_files_is_raised_as_far_as_it_goes(monkeypatch, have, wanted):
    asked = []

    def refuse(_, limits):
        asked.append(limits)
        raise OSError

    monkeypatch.setattr(resource, "getrlimit", lambda _: have)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_open_files_limit()
    assert asked == ([] if wanted is None else [wanted])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a moment")
def test_whom_the_kernel_does_not_tell_the_truth_sees_nothing_in_memory(path):
    """mincore(2) tells whoever neither owns nor may write a file that all of it is there."""
    touch(path)
    for folder in path.parents:
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    path.chmod(0o444)
    assert OpenFile(path).in_memory(0, 10)
    os.seteuid(65534)
    try:
        file = OpenFile(path)
    finally:
        os.seteuid(0)
    assert not file.in_memory(0, 10)
    assert file.read_now(0, 10) == DATA[:10]


def test_what_does_not_lie_in_the_file_cannot_be_had(path):
    file = OpenFile(path)
    touch(path)
    assert file.read_now(SIZE - 5, SIZE + 5) is None
    assert not file.in_memory(SIZE - 5, SIZE + 5)
    assert file.in_memory(SIZE - 5, SIZE)
