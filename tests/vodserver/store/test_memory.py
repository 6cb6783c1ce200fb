"""What is verified in memory stays so only while nobody writes into the file."""

import pytest

from tests.vodserver.conftest import flip_byte
from vodserver.errors import DiskError
from vodserver.store.files import OpenFile
from vodserver.store.memory import Memory
from vodserver.store.sums import sums_of

KEY = ("folder", 0)
CONTENT = bytes(range(256)) * 1024


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "000000"
    path.write_bytes(CONTENT)
    return path


def ready(memory, begin=0, stop=len(CONTENT)):
    return memory.ready(KEY, 0, begin, stop, size=len(CONTENT), sums=sums_of(CONTENT))


def test_what_was_learned_is_ready(path):
    memory, file = Memory(), OpenFile(path)
    assert ready(memory) is None
    memory.learn(KEY, 0, 0, len(CONTENT), file)
    assert ready(memory) is file


def test_a_byte_that_changes_in_memory_is_never_sent(path):
    """At once: within the time for which the kernel is believed too."""
    memory = Memory(clock=lambda: 0.0)
    memory.learn(KEY, 0, 0, len(CONTENT), OpenFile(path))
    assert ready(memory) is not None

    flip_byte(path, 70_000)

    assert ready(memory, 0, 65_536) is not None
    with pytest.raises(DiskError, match="checksum"):
        ready(memory, 65_536, 131_072)


def test_a_change_before_it_was_learned_counts_too(path):
    """The file was opened, then changed, and what was read before the change is learned."""
    memory, file = Memory(), OpenFile(path)
    flip_byte(path, 5)
    memory.learn(KEY, 0, 0, len(CONTENT), file)
    with pytest.raises(DiskError, match="checksum"):
        ready(memory)


def test_a_file_that_is_gone_is_not_ready(path):
    memory = Memory(clock=lambda: 0.0)
    memory.learn(KEY, 0, 0, len(CONTENT), OpenFile(path))
    assert ready(memory) is not None
    path.unlink()
    assert ready(memory) is None
    assert not memory.has(KEY, 0)
