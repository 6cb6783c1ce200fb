"""What can be sent at once: looked for where it was read last, never where it is bad."""

import dataclasses

import pytest

from tests.vodserver.conftest import flip_byte
from vodserver.store.disks import RealDisk
from vodserver.store.dispatched import Dispatched
from vodserver.store.memory import Memory
from vodserver.store.resident import Resident, part_of


class Looking:
    """Residents over the disks of a home, and the faults that were found."""

    def __init__(self, home):
        self.faults = []
        self.dispatched = Dispatched()
        self.memory = Memory(self.dispatched)
        self.disks = {number: RealDisk(path) for number, path in enumerate(home.disks)}
        self.resident = Resident(self.memory, disk=self.disks.get, fault=self._note_fault)
        self.title = home.title
        self.extent = home.title.extents[0]
        self.key = home.title.folder, 0

    def _note_fault(self, key, number, words):
        self.faults.append((key, number, words))
        self.resident.bad.add((*key, number))

    def open(self, number):
        """As after a read of the extent's first bytes from this disk."""
        self.disks[number].read(self.key, 0, self.extent.size)
        self.resident.learn(self.key, number, 0, 0, self.disks[number].file(self.key))

    def ready(self, begin=0, stop=100):
        return self.resident.ready(self.title.folder, self.extent, begin, stop)


@pytest.fixture
def looking(home):
    looking = Looking(home)
    yield looking
    looking.dispatched.close()


def test_nothing_is_at_hand_before_it_was_read(looking):
    assert looking.ready() is None


@pytest.mark.parametrize("copy", [0, 1])
def test_what_was_read_last_is_looked_at_first(looking, copy):
    for number in (looking.extent.disks[1 - copy], looking.extent.disks[copy]):
        looking.open(number)

    assert looking.ready().disk == looking.extent.disks[copy]


def test_a_replica_known_to_be_bad_is_passed_over(looking):
    first, second = looking.extent.disks
    looking.open(first)
    looking.open(second)
    looking.resident.bad.add((*looking.key, second))

    assert looking.ready().disk == first
    looking.resident.bad.add((*looking.key, first))
    assert looking.ready() is None


def test_a_disk_that_is_not_there_is_passed_over(looking):
    number = looking.extent.disks[0]
    looking.open(number)
    del looking.disks[number]
    looking.memory.forget_disk(number)

    assert looking.ready() is None


def test_rot_in_memory_is_a_fault_and_not_at_hand(looking, home):
    number = looking.extent.disks[0]
    flip_byte(home.replica(0, 0), 50)
    looking.open(number)

    assert looking.ready() is None
    ((key, disk, words),) = looking.faults
    assert (key, disk) == (looking.key, number)
    assert "checksum" in words


def test_of_a_title_only_replicas_that_moved_are_let_go(looking):
    first, second = looking.extent.disks
    looking.open(first)
    looking.open(second)
    stays = dataclasses.replace(looking.extent, disks=(first,))
    now = dataclasses.replace(looking.title, extents=(stays, *looking.title.extents[1:]))

    looking.resident.forget_title(looking.title, now)

    assert looking.memory.has(looking.key, first)
    assert not looking.memory.has(looking.key, second)
    looking.resident.forget_title(looking.title)
    assert not looking.memory.has(looking.key, first)


def test_a_part_ends_with_its_extent(home):
    title = home.title
    size = title.extent_bytes

    assert part_of(title, size + 3, title.film_bytes) == (title.extents[1], 3, size)
    assert part_of(title, 5, 9) == (title.extents[0], 5, 9)
    last = title.extents[-1]
    assert part_of(title, title.film_bytes - 1, title.film_bytes) == (
        last,
        last.size - 1,
        last.size,
    )
