"""What the kernel is answered, and when: over a socket in its place, on a clock that is ours."""

import errno
import heapq
import itertools
import json
import socket
import struct
from dataclasses import asdict

import numpy as np
import pytest

from experiments.arrays.disk import DiskModel
from experiments.arrays.mounted import MountedDisks, MountSpec, film_name

MODEL = DiskModel(access_seconds=0.1, rate=1000.0, jitter_share=0.0)
SIZE = 6000


class Loop:
    """The part of an event loop that disks need."""

    def __init__(self):
        self.now = 0.0
        self.is_watching = True
        self._due = []
        self._count = itertools.count()

    def time(self):
        return self.now

    def call_at(self, when, call, *arguments):
        heapq.heappush(self._due, (when, next(self._count), call, arguments))

    def call_later(self, delay, call, *arguments):
        self.call_at(self.now + delay, call, *arguments)

    def remove_reader(self, _):
        self.is_watching = False

    def run(self, until=1e9):
        while self._due and self._due[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(self._due)
            call(*arguments)


class Kernel:
    """Asks as the kernel does; tells who was answered what, and when."""

    def __init__(self, folder, **more):
        self.films = {number: np.random.default_rng(number).bytes(SIZE) for number in (0, 1, 3)}
        for number, data in self.films.items():
            (folder / film_name(number)).write_bytes(data)
        self.faults = folder / "faults.json"
        spec = MountSpec(
            **{
                "disk": asdict(MODEL),
                "disks": 3,
                "films": str(folder),
                "mount": "",
                "command": [],
                "host": "",
                "port": 0,
                "faults": str(self.faults),
                "seed": 1,
            }
            | more
        )
        self.loop = Loop()
        self.socket, self.device = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        self.device.setblocking(False)
        self.disks = MountedDisks(spec, self.device.fileno(), self.loop)

    def close(self):
        self.disks.close()
        self.socket.close()
        self.device.close()

    def ask(self, unique, film, offset, size):
        node = sorted(self.films).index(film) + 2
        body = struct.pack("=QQIIQII", 0, offset, size, 0, 0, 0, 0)
        head = struct.pack("=IIQQIIIHH", 40 + len(body), 15, unique, node, 0, 0, 0, 0, 0)
        self.socket.send(head + body)
        self.disks.serve()

    def answers(self):
        """Of all that was asked: when, to whom, the error, the bytes."""
        found = []
        while True:
            self.loop.run(self.loop.now)
            while (message := self._hear()) is not None:
                _, error, unique = struct.unpack_from("=IiQ", message)
                found.append((round(self.loop.now, 6), unique, -error, message[16:]))
            before = self.loop.now
            if not self.loop._due:
                return found
            self.loop.run(self.loop._due[0][0])
            assert self.loop.now >= before

    def _hear(self):
        try:
            return self.socket.recv(1 << 20)
        except BlockingIOError:
            return None


@pytest.fixture
def make(tmp_path):
    made = []

    def make(**more):
        made.append(Kernel(tmp_path, **more))
        return made[-1]

    yield make
    for kernel in made:
        kernel.close()


def test_a_disk_reads_for_one_after_the_other(make):
    kernel = make()
    kernel.ask(11, 0, 0, 1000)
    kernel.ask(12, 3, 2000, 500)  # on the first disk, too
    kernel.ask(13, 1, 100, 1000)
    films = kernel.films
    assert kernel.answers() == [
        (1.1, 11, 0, films[0][:1000]),
        (1.1, 13, 0, films[1][100:1100]),
        (1.7, 12, 0, films[3][2000:2500]),
    ]
    assert [each["reads"] for each in kernel.disks.statistics()] == [2, 1, 0]


def test_a_striped_read_is_there_when_its_last_part_is(make):
    kernel = make(unit=1000)
    kernel.ask(11, 0, 1000, 400)
    kernel.ask(12, 0, 0, 2000)
    assert kernel.answers() == [
        (0.5, 11, 0, kernel.films[0][1000:1400]),
        (1.6, 12, 0, kernel.films[0][:2000]),
    ]


def test_those_who_want_the_same_share_a_read(make):
    kernel = make(joins=True)
    for unique in (11, 12, 13):
        kernel.ask(unique, 0, 0, 1000)
    assert kernel.answers() == [(1.1, n, 0, kernel.films[0][:1000]) for n in (11, 12, 13)]


@pytest.mark.parametrize("kind", ["death", "error"])
def test_a_disk_that_fails_says_so_and_the_others_do_not(make, kind):
    kernel = make()
    kernel.faults.write_text(json.dumps([{"disk": 0, "kind": kind, "share": 1.0}]))
    kernel.ask(11, 0, 0, 1000)
    kernel.ask(12, 1, 0, 1000)
    assert kernel.answers() == [
        (1.1, 11, errno.EIO, b""),
        (1.1, 12, 0, kernel.films[1][:1000]),
    ]


def test_a_stutter_takes_longer_and_corruption_is_silent(make):
    kernel = make()
    faults = [
        {"disk": 0, "kind": "stutter", "share": 1.0},
        {"disk": 0, "kind": "corrupt", "share": 1.0},
    ]
    kernel.faults.write_text(json.dumps(faults))
    kernel.ask(11, 0, 0, 1000)
    ((when, _, error, data),) = kernel.answers()
    assert (when, error) == (2.1, 0)
    assert data[0] == kernel.films[0][0] ^ 0xFF
    assert data[1:] == kernel.films[0][1:1000]


def test_a_disk_that_stalls_reads_when_it_is_well_again(make):
    kernel = make()
    kernel.faults.write_text(json.dumps([{"disk": 0, "kind": "stall", "share": 1.0}]))
    kernel.ask(11, 0, 0, 1000)
    kernel.ask(12, 0, 1000, 1000)
    kernel.loop.run(5.0)
    kernel.faults.unlink()
    told = kernel.answers()
    assert [unique for _, unique, _, _ in told] == [11, 12]
    assert told[0][0] == pytest.approx(5.0 + 1.1, abs=0.05)
    assert told[1][0] == pytest.approx(told[0][0] + 1.0, abs=1e-6)


def test_an_end_of_the_mount_is_no_error(make):
    kernel = make()
    kernel.disks._device = -1
    kernel.disks.serve()
    assert not kernel.loop.is_watching
