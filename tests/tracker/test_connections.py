import asyncio

import pytest

from tracker.connections import MAX_HEAD_BYTES, ConnectionGate
from tracker.messages import pack_address
from tracker.settings import TrackerSettings

STRANGER = pack_address("198.51.100.1")


def gate(**limits):
    # Nothing is sent in these tests, so nothing must be answered.
    return ConnectionGate(TrackerSettings(**limits), respond=NotImplemented)


def test_one_address_cannot_take_all_places():
    door = gate(max_connections_per_address=2)
    assert [door.admit(STRANGER) for _ in range(3)] == [True, True, False]
    assert door.admit(pack_address("198.51.100.2"))
    assert (door.open, door.accepted, door.refused) == (3, 3, 1)


def test_a_released_place_is_free_again():
    door = gate(max_connections_per_address=1)
    assert door.admit(STRANGER)
    door.release(STRANGER)
    assert door.admit(STRANGER)
    door.release(STRANGER)
    assert door.open == 0
    assert not door._groups


@pytest.mark.parametrize("text", ["127.0.0.1", "::1"])
def test_loopback_is_bound_by_the_total_alone(text):
    door = gate(max_connections=3, max_connections_per_address=1)
    assert [door.admit(pack_address(text)) for _ in range(4)] == [True, True, True, False]


class Wire:
    """The least of a transport: who is at the other end, what was written, how it ended."""

    def __init__(self):
        self.written, self.cut, self.closed, self.reading = [], False, False, True

    def get_extra_info(self, name):
        return ("198.51.100.1", 50_000) if name == "peername" else None

    def set_write_buffer_limits(self, high):
        self.limit = high

    def write(self, data):
        self.written.append(bytes(data))

    def abort(self):
        self.cut = True

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


def page(head, _address):
    """The least of a server: says the head again; stays open unless told to stop."""
    return (b"[%b]" % (b"too long" if head is None else head), head not in {None, b"stop"})


def opened(door):
    connection, wire = door(), Wire()
    connection.connection_made(wire)
    return connection, wire


async def test_only_answers_keep_a_connection(monkeypatch):
    """Not what the client sends: one that trickles its request would never be cut off."""
    loop = asyncio.get_running_loop()
    door, seconds = ConnectionGate(TrackerSettings(), page), [0.0]
    monkeypatch.setattr(loop, "time", lambda: seconds[0])
    connection, wire = opened(door)
    seconds[0] = 14.0
    connection.data_received(b"ping\r\n\r\n")
    seconds[0] = 28.9
    connection.data_received(b"pi")
    connection._watch()
    assert not wire.cut
    seconds[0] = 29.0
    connection._watch()
    assert wire.cut
    connection.connection_lost(None)
    assert (wire.written, door.bytes_sent) == ([b"[ping]"], 6)
    assert (door.open, door.timed_out) == (0, 1)


async def test_a_refused_connection_is_cut_and_its_data_ignored():
    door = ConnectionGate(TrackerSettings(max_connections=1), page)
    (first, wire), (second, other) = opened(door), opened(door)
    second.data_received(b"ping\r\n\r\n")
    assert (wire.cut, other.cut, other.written) == (False, True, [])
    second.connection_lost(None)
    assert door.open == 1
    first.connection_lost(None)
    assert door.open == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_requests_are_answered_in_turn_however_they_are_cut(size):
    door = ConnectionGate(TrackerSettings(), page)
    connection, wire = opened(door)
    sent = b"".join(b"%d\r\nx: y\r\n\r\n" % number for number in range(5))
    for start in range(0, len(sent), size):
        connection.data_received(sent[start : start + size])
    assert b"".join(wire.written) == b"".join(b"[%d\r\nx: y]" % number for number in range(5))
    connection.connection_lost(None)


async def test_nothing_is_answered_behind_the_last_request():
    connection, wire = opened(ConnectionGate(TrackerSettings(), page))
    connection.data_received(b"stop\r\n\r\nmore\r\n\r\n")
    assert (wire.written, wire.closed) == ([b"[stop]"], True)
    connection.connection_lost(None)


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
async def test_an_endless_head_ends_the_connection(end):
    connection, wire = opened(ConnectionGate(TrackerSettings(), page))
    connection.data_received(b"x" * (MAX_HEAD_BYTES + 1) + end)
    assert (wire.written, wire.closed) == ([b"[too long]"], True)
    connection.connection_lost(None)


async def test_who_does_not_read_is_not_answered_more():
    connection, wire = opened(ConnectionGate(TrackerSettings(), page))
    connection.pause_writing()
    connection.data_received(b"ping\r\n\r\n")
    assert (wire.written, wire.reading) == ([], False)
    connection.resume_writing()
    assert (wire.written, wire.reading) == ([b"[ping]"], True)
    connection.connection_lost(None)


async def test_a_long_pipeline_is_answered_in_portions():
    """So that whoever asks much and reads nothing costs a portion of memory, not all of it."""
    door = ConnectionGate(TrackerSettings(), lambda _head, _address: (b"x" * 40_000, True))
    connection, wire = opened(door)
    connection.data_received(b"a\r\n\r\n" * 10)
    assert [len(data) for data in wire.written] == [80_000]
    connection.pause_writing()
    await asyncio.sleep(0)
    assert len(wire.written) == 1
    connection.connection_lost(None)
