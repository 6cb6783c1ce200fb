"""Films into real sockets: slow readers, resets, waits, faults, and an end in every state."""

import asyncio
import errno
import hashlib
import os
import socket
import struct
from types import SimpleNamespace

import pytest
import uvloop

from vodserver.errors import DiskError, ReadError
from vodserver.http import sender
from vodserver.http.sender import Sending
from vodserver.http.writable import Writable
from vodserver.store import Ready
from vodserver.store.files import OpenFile

SIZE = 700_000
DATA = hashlib.shake_128(b"film").digest(SIZE)
HEAD = b"HTTP/1.1 206 Partial Content\r\n\r\n"
CHUNK = 64 * 1024
SECONDS = 10.0


class Film:
    """A source of one film; parts of it are not at hand, or fail."""

    def __init__(self, path, *, views=False):
        self.file = OpenFile(path)
        self.views = views
        self.misses = set()
        self.fault = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.fetched = []
        self.resident = 0
        self.faults = []
        self.bad = None
        self.failing = set()
        self.asked = asyncio.Event()
        self.id = "film"

    def _part(self, at, end):
        if self.views:
            return Ready(None, at, end - at, 3, memoryview(DATA)[at:end])
        if self.bad is not None and at // CHUNK in self.failing:
            return Ready(self.bad, at, end - at, 7)
        return Ready(self.file, at, end - at, 3)

    def ready(self, title, at, end):
        return None if at // CHUNK in self.misses else self._part(at, end)

    async def fetch(self, title, at, end):
        self.fetched.append((at, end))
        self.asked.set()
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.misses.discard(at // CHUNK)
        return self._part(at, end)

    def note_fault(self, title, at, disk, fault):
        self.faults.append((at, disk, fault))
        self.failing.discard(at // CHUNK)

    def note_resident(self, disk, size):
        self.resident += size


class Pacer:
    """Lets each chunk go when the test says so."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.counts = []

    async def before(self, count):
        self.asked.set()
        await self.gate.wait()

    def sent(self, count):
        self.counts.append(count)


class Line:
    """A TCP connection over loopback, and one sending into it."""

    def __init__(self, film, *, small=False):
        listening = socket.create_server(("127.0.0.1", 0))
        self.there = socket.socket()
        if small:
            self.there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.there.connect(listening.getsockname())
        self.here, _ = listening.accept()
        listening.close()
        if small:
            self.here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        for each in (self.here, self.there):
            each.setblocking(False)
        self.film = film
        self.loop = asyncio.get_running_loop()
        self.writable = Writable()
        self.done = self.loop.create_future()
        self.calls = 0
        self.counted = 0

    def send(self, at=0, end=SIZE, head=HEAD, pacer=None):
        def count(size):
            self.counted += size

        def done(error):
            self.calls += 1
            self.done.set_result(error)

        self.sending = Sending(
            self.film,
            self.film,
            at,
            end,
            sock=self.here,
            head=head,
            chunk_bytes=CHUNK,
            writable=self.writable,
            count=count,
            done=done,
            pacer=pacer,
        )
        self.sending.start()

    async def take(self, size, step=1 << 16):
        data = bytearray()
        async with asyncio.timeout(SECONDS):
            while len(data) < size:
                part = await self.loop.sock_recv(self.there, min(step, size - len(data)))
                assert part
                data += part
        return bytes(data)

    async def wait(self):
        async with asyncio.timeout(SECONDS):
            return await self.done

    def send_at_once(self, at, end):
        self.sending = SimpleNamespace(cancel=lambda: None)
        return sender.send_at_once(self.film, self.film, at, end, (self.here, HEAD))

    def has_writer(self):
        return self.writable.waits(self.here.fileno())

    def close(self):
        self.writable.close()
        self.here.close()
        self.there.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request, tmp_path):
    """Run a test on either loop: `run(test, small=..., views=...)`."""
    path = tmp_path / "film"
    path.write_bytes(DATA)

    def runner(test, *, views=False, small=False):
        async def main():
            line = Line(Film(path, views=views), small=small)
            try:
                await test(line)
            finally:
                line.sending.cancel()
                line.close()
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as loop:
            loop.run(main())

    return runner


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(
    ("at", "end"), [(0, SIZE), (1, 2), (CHUNK - 1, CHUNK + 1), (SIZE - 5, SIZE), (7, 7), (0, 0)]
)
def test_what_arrives_is_the_head_and_the_film(run, views, small, at, end):
    """Also with buffers of a few KiB, and nothing at all after the head."""

    async def test(line):
        line.send(at, end)
        wanted = HEAD + DATA[at:end]
        assert await line.take(len(wanted), 4000 if small else 1 << 16) == wanted
        assert await line.wait() is None
        assert line.counted == len(wanted)
        assert line.film.resident == end - at
        assert line.calls == 1
        assert not line.has_writer()
        assert not line.sending.waits_for_client

    run(test, views=views, small=small)


def test_nothing_at_all_is_done_at_once(run):
    async def test(line):
        line.send(5, 5, b"")
        assert line.done.done()
        assert line.counted == 0

    run(test)


def test_it_waits_for_a_client_that_takes_nothing(run):
    async def test(line):
        line.send()
        assert line.sending.waits_for_client
        held = line.counted
        await asyncio.sleep(0)
        assert held <= line.counted < len(HEAD) + SIZE
        assert await line.take(len(HEAD) + SIZE) == HEAD + DATA
        assert await line.wait() is None

    run(test, small=True)


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("misses", [{0}, {3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}])
def test_what_is_not_at_hand_is_fetched_in_its_place(run, views, misses):
    async def test(line):
        line.film.misses = set(misses)
        line.send()
        assert await line.take(len(HEAD) + SIZE) == HEAD + DATA
        assert await line.wait() is None
        assert {at // CHUNK for at, _ in line.film.fetched} == misses
        assert line.film.resident < SIZE

    run(test, views=views, small=True)


def test_a_part_that_was_fetched_is_sent_though_memory_lost_it(run):
    """Its bytes are at hand: asking the disk again and again could go on for ever."""

    async def test(line):
        line.film.ready = lambda *_: None
        line.send(0, CHUNK)
        assert await line.take(len(HEAD) + CHUNK, 3000) == HEAD + DATA[:CHUNK]
        assert await line.wait() is None
        assert line.film.fetched == [(0, CHUNK)]
        assert line.film.resident == 0

    run(test, views=True, small=True)


@pytest.mark.parametrize("fault", [ReadError("no replica"), DiskError("gone"), KeyError("odd")])
@pytest.mark.parametrize("where", [0, 4])
def test_what_cannot_be_fetched_ends_it_with_the_reason(run, fault, where):
    async def test(line):
        line.film.misses = {where}
        line.film.fault = fault
        line.send()
        taken = asyncio.create_task(line.take(where * CHUNK))
        assert await line.wait() is fault
        await taken
        assert not line.has_writer()

    run(test)


def test_a_replica_that_is_cut_while_it_is_sent_ends_it(run):
    async def test(line):
        os.truncate(f"/proc/self/fd/{line.film.file.fd}", 0)
        line.send()
        assert isinstance(await line.wait(), ReadError)
        assert not line.has_writer()

    run(test)


@pytest.mark.parametrize("code", [errno.EIO, errno.EBADMSG, errno.EUCLEAN, errno.ESTALE])
@pytest.mark.parametrize("where", [0, 3, SIZE // CHUNK])
def test_what_one_disk_cannot_read_comes_from_another(run, monkeypatch, tmp_path, code, where):
    """Memory lost a part between the look and the sending: the client does not notice."""
    (tmp_path / "bad").write_bytes(bytes(SIZE))
    bad = OpenFile(tmp_path / "bad")
    break_file(monkeypatch, bad, code)

    async def test(line):
        film = line.film
        film.failing = {where}
        film.bad = bad
        line.send()
        assert await line.take(len(HEAD) + SIZE) == HEAD + DATA
        assert await line.wait() is None
        assert line.counted == len(HEAD) + SIZE
        ((at, disk, fault),) = film.faults
        assert (at // CHUNK, disk) == (where, 7)
        assert os.strerror(code) in fault

    run(test)


def test_what_no_disk_can_read_ends_it(run, monkeypatch):
    async def test(line):
        break_file(monkeypatch, line.film.file, errno.EIO)
        line.send()
        error = await line.wait()
        assert isinstance(error, ReadError)
        assert len(line.film.faults) == sender._MOST_FAULTS
        assert not line.has_writer()

    run(test)


def test_an_answer_in_one_go_leaves_what_cannot_be_read_to_whoever_goes_on(run, monkeypatch):
    async def test(line):
        film = line.film
        break_file(monkeypatch, film.file, errno.EIO)
        assert line.send_at_once(5, 100) == (len(HEAD), 0, False)
        assert film.faults == [(5, 3, f"it cannot be read: {os.strerror(errno.EIO)}")]

    run(test)


@pytest.mark.parametrize("part", [1000, CHUNK])
def test_an_answer_in_one_go_takes_as_many_parts_as_it_needs(run, part):
    """A range may reach over the end of an extent."""

    async def test(line):
        film = line.film
        film.ready = lambda _, at, end: film._part(at, min(end, (at // part + 1) * part))
        assert line.send_at_once(500, 2500) == (len(HEAD), 2000, False)
        assert await line.take(len(HEAD) + 2000) == HEAD + DATA[500:2500]
        assert film.resident == 2000

    run(test)


def test_an_answer_in_one_go_stops_where_something_has_to_be_fetched(run):
    async def test(line):
        film = line.film
        film.misses = {1}
        film.ready = lambda _, at, end: (
            None if at // CHUNK in film.misses else film._part(at, min(end, CHUNK))
        )
        assert line.send_at_once(0, 2 * CHUNK) == (len(HEAD), CHUNK, False)
        assert line.send_at_once(CHUNK, SIZE) == (0, 0, False)
        assert await line.take(len(HEAD) + CHUNK) == HEAD + DATA[:CHUNK]

    run(test)


def test_what_went_of_an_answer_in_one_go_is_told_before_its_connection_fails(run, monkeypatch):
    async def test(line):
        film, real = line.film, os.sendfile
        film.ready = lambda _, at, end: film._part(at, min(end, (at // 1000 + 1) * 1000))

        def sendfile(fd, file, offset, count):
            if offset >= 1000:
                raise ConnectionResetError
            return real(fd, file, offset, count)

        monkeypatch.setattr(os, "sendfile", sendfile)
        assert line.send_at_once(500, 2500) == (len(HEAD), 500, False)
        line.here.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError):
            line.send_at_once(500, 2500)

    run(test)


def test_an_answer_in_one_go_says_when_the_socket_is_full(run):
    async def test(line):
        headed, sent, full = line.send_at_once(0, SIZE)
        assert (headed, full) == (len(HEAD), True)
        assert 0 < sent < SIZE
        assert line.film.resident == sent
        assert line.send_at_once(0, 9) == (0, 0, True)

    run(test, small=True)


def test_a_connection_that_fails_is_no_fault_of_a_disk(run):
    async def test(line):
        line.there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.there.close()
        line.send()
        assert isinstance(await line.wait(), ConnectionError)
        assert line.film.faults == []

    run(test)


def break_file(monkeypatch, broken, code):
    """Have the kernel unable to read a file when it is sent."""
    real = os.sendfile

    def sendfile(fd, file, offset, count):
        if file == broken.fd:
            raise OSError(code, os.strerror(code))
        return real(fd, file, offset, count)

    monkeypatch.setattr(os, "sendfile", sendfile)


def test_a_pacer_that_fails_ends_it(run):
    class Broken(Pacer):
        async def before(self, count):
            raise RuntimeError("no timetable")

    async def test(line):
        line.send(pacer=Broken())
        assert isinstance(await line.wait(), RuntimeError)
        assert not line.has_writer()

    run(test)


@pytest.mark.parametrize("waiting", ["client", "fetch", "pacer"])
def test_a_connection_that_is_reset_ends_it_at_the_next_byte(run, waiting):
    async def test(line):
        pacer = Pacer() if waiting == "pacer" else None
        if waiting == "fetch":
            line.film.misses = {0}
            line.film.gate.clear()
        line.send(pacer=pacer)
        line.there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.there.close()
        if waiting == "fetch":
            line.film.gate.set()
        if pacer is not None:
            pacer.gate.set()
        assert isinstance(await line.wait(), ConnectionError)
        assert not line.has_writer()

    run(test, small=True)


@pytest.mark.parametrize("state", ["client", "fetch", "pacer", "done", "failed", "twice"])
def test_it_can_be_stopped_in_any_state(run, state):
    """Nothing of it is left in the loop, and nobody is told."""

    async def test(line):
        pacer = Pacer() if state == "pacer" else None
        if state in {"fetch", "failed"}:
            line.film.misses = {0}
            line.film.fault = ReadError("no replica") if state == "failed" else None
        if state == "fetch":
            line.film.gate.clear()
        line.send(0, 0 if state == "done" else SIZE, pacer=pacer)
        if state == "fetch":
            await line.film.asked.wait()
        elif pacer is not None:
            await pacer.asked.wait()
        elif state == "failed":
            await line.wait()
        calls = line.calls
        line.sending.cancel()
        if state == "twice":
            line.sending.cancel()
        line.film.gate.set()
        if pacer is not None:
            pacer.gate.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert line.calls == calls == (state in {"done", "failed"})
        assert not line.has_writer()
        assert line.sending._waiting is None

    run(test, small=True)


def test_it_can_be_stopped_from_the_call_that_says_it_is_done(run):
    async def test(line):
        line.film.misses = {0}
        line.film.fault = ReadError("no replica")
        line.send()
        line.done.add_done_callback(lambda _: line.sending.cancel())
        assert isinstance(await line.wait(), ReadError)

    run(test)


def test_the_pacer_is_asked_before_each_chunk_and_told_all_that_went(run):
    async def test(line):
        pacer = Pacer()
        line.send(pacer=pacer)
        await pacer.asked.wait()
        await asyncio.sleep(0)
        assert line.counted == 0, "the head goes with the first bytes"
        pacer.gate.set()
        assert await line.take(len(HEAD) + SIZE) == HEAD + DATA
        assert await line.wait() is None
        assert sum(pacer.counts) == SIZE
        assert max(pacer.counts) <= CHUNK

    run(test, small=True)
