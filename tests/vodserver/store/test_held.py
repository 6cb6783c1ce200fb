"""What is kept in memory: what is asked for most, and no more than may be."""

import os

import pytest

from vodserver.errors import DiskError
from vodserver.store.dispatched import Dispatched
from vodserver.store.files import OpenFile
from vodserver.store.held import held_share, memory_bytes
from vodserver.store.memory import Memory
from vodserver.store.rows import Extent
from vodserver.store.sums import SUM_SPAN, sums_of

DATA = bytes(range(256)) * 256
SUMS = sums_of(DATA)
SIZE = SUM_SPAN
OFTEN = 40


class Replicas:
    """Replicas of as many extents, open and verified, and a memory that may hold two of them."""

    def __init__(self, folder, memory, count):
        self.memory = memory
        self.files = []
        for number in range(count):
            path = folder / f"{number}"
            path.write_bytes(DATA)
            with path.open("rb") as file:
                os.fsync(file.fileno())
            self.files.append(OpenFile(path))
            memory.learn(("t", number), 0, 0, SIZE, self.files[number])

    def send(self, number, times=1):
        for _ in range(times):
            extent = Extent(number, SIZE, (0,), SUMS)
            assert self.memory.ready(("t", number), 0, 0, 1000, extent) is self.files[number]

    @property
    def held(self):
        return [number for number, file in enumerate(self.files) if file.held]


@pytest.fixture
def memory():
    with Dispatched() as dispatched:
        made = Memory(dispatched, 16)
        made.most_held_bytes = 2 * SIZE
        yield made
        made.clear()
        assert made.held_bytes == 0


@pytest.fixture
def replicas(tmp_path, memory):
    made = Replicas(tmp_path, memory, 8)
    try:
        made.files[0].hold()
    except OSError as error:
        pytest.skip(f"this user may not lock memory: {error}")
    made.files[0].let_go()
    return made


def test_only_what_is_sent_often_is_held(replicas, memory):
    replicas.send(1, 3)
    assert replicas.held == []
    replicas.send(1, OFTEN)
    assert replicas.held == [1]
    assert memory.held_bytes == SIZE


def test_nothing_is_held_unless_it_may_be(replicas, memory):
    memory.most_held_bytes = 0
    replicas.send(1, OFTEN)
    assert replicas.held == []


def test_no_more_is_held_than_may_be_and_what_is_used_little_makes_room(replicas, memory):
    for number in (0, 1, 2):
        replicas.send(number, OFTEN)
    # Of eight, four were used less recently than the newest half: neither of the first two is.
    assert replicas.held == [0, 1]
    for number in (3, 4, 5, 6, 7):
        replicas.send(number)
    replicas.send(2, 2 * OFTEN)
    assert replicas.held == [1, 2]
    assert memory.held_bytes == 2 * SIZE


def test_what_is_too_large_takes_nobodys_place(replicas, memory):
    replicas.send(0, OFTEN)
    memory.most_held_bytes = SIZE // 2
    for number in range(1, 8):
        replicas.send(number, OFTEN)
    assert replicas.held == [0]


def test_what_was_written_to_is_let_go_of_and_verified_anew(replicas, memory, tmp_path):
    replicas.send(0, OFTEN)
    (tmp_path / "0").write_bytes(b"x" + DATA[1:])

    with pytest.raises(DiskError, match="checksum"):
        replicas.send(0)
    assert replicas.held == []
    assert memory.held_bytes == 0


@pytest.mark.parametrize("how", ["forget", "forget_disk", "clear", "unlink"])
def test_what_is_forgotten_is_held_no_longer(replicas, memory, tmp_path, how):
    replicas.send(0, OFTEN)
    assert replicas.held == [0]
    if how == "forget":
        memory.forget(("t", 0), 0)
    elif how == "forget_disk":
        memory.forget_disk(0)
    elif how == "clear":
        memory.clear()
    else:
        (tmp_path / "0").unlink()
        assert memory.ready(("t", 0), 0, 0, 1, Extent(0, SIZE, (0,), SUMS)) is None
    assert replicas.held == []
    assert memory.held_bytes == 0


def test_what_was_replaced_is_held_no_longer(replicas, memory, tmp_path):
    replicas.send(0, OFTEN)
    (tmp_path / "new").write_bytes(DATA)
    (tmp_path / "new").rename(tmp_path / "0")
    now = OpenFile(tmp_path / "0")

    memory.learn(("t", 0), 0, 0, SIZE, now)

    assert replicas.held == []
    assert memory.held_bytes == 0
    assert memory.ready(("t", 0), 0, 0, 1, Extent(0, SIZE, (0,), SUMS)) is now


def test_a_refusal_is_taken_for_an_answer(replicas, memory, monkeypatch):
    def refuse(_):
        raise OSError(12, "cannot be kept in memory")

    replicas.send(0, OFTEN)
    monkeypatch.setattr(OpenFile, "hold", refuse)
    replicas.send(1, OFTEN)

    assert replicas.held == [0]
    assert memory.most_held_bytes == SIZE


def test_the_replicas_that_are_closed_for_others_are_held_no_longer(tmp_path, memory, replicas):
    replicas.send(0, OFTEN)
    more = tmp_path / "more"
    more.mkdir()
    for number in range(16):
        path = more / f"{number}"
        path.write_bytes(DATA)
        memory.learn(("u", number), 0, 0, SIZE, OpenFile(path))
    assert replicas.held == []


def test_a_control_group_that_may_have_less_counts(tmp_path):
    machine = memory_bytes(tmp_path, tmp_path / "none")
    assert machine == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    own = tmp_path / "own"
    own.write_text("1:cpu:/elsewhere\n0::/outer/inner\n")
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    assert memory_bytes(tmp_path, own) == machine
    (tmp_path / "outer" / "memory.max").write_text("1000000\n")
    assert memory_bytes(tmp_path, own) == 1_000_000


def test_processes_share_what_may_be_held():
    assert held_share(1000, 4) == 250
    assert held_share(0) == 0
    assert held_share(None, 2) == memory_bytes() // 4 // 2
