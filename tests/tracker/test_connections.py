import asyncio

import pytest

from tracker.connections import ConnectionGate
from tracker.messages import pack_address
from tracker.settings import TrackerSettings

STRANGER = pack_address("198.51.100.1")


def gate(**limits):
    # No test here opens a connection: the protocol factory must not be called.
    return ConnectionGate(TrackerSettings(**limits), make_protocol=NotImplemented)


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
    """The least of a transport: who is at the other end, what was written, whether it was cut."""

    def __init__(self):
        self.written = []
        self.cut = False

    def get_extra_info(self, name):
        return ("198.51.100.1", 50_000) if name == "peername" else None

    def write(self, data):
        self.written.append(bytes(data))

    def abort(self):
        self.cut = True


class Page(asyncio.Protocol):
    """The least of a server: says how many bytes it was sent."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.writelines([b"got ", str(len(data)).encode()])


async def test_only_answers_keep_a_connection(monkeypatch):
    """Not what the client sends: one that trickles its request would never be cut off."""
    loop = asyncio.get_running_loop()
    door, wire, seconds = ConnectionGate(TrackerSettings(), Page), Wire(), [0.0]
    monkeypatch.setattr(loop, "time", lambda: seconds[0])
    connection = door()
    connection.connection_made(wire)
    seconds[0] = 14.0
    connection.data_received(b"ping")
    seconds[0] = 28.9
    connection._watch()
    assert not wire.cut
    seconds[0] = 29.0
    connection._watch()
    assert wire.cut
    connection.connection_lost(None)
    assert (wire.written, door.bytes_sent) == ([b"got 4"], 5)
    assert (door.open, door.timed_out) == (0, 1)


async def test_a_refused_connection_is_cut_and_its_data_ignored():
    door = ConnectionGate(TrackerSettings(max_connections=1), Page)
    first, second = door(), door()
    wires = Wire(), Wire()
    first.connection_made(wires[0])
    second.connection_made(wires[1])
    second.data_received(b"ping")
    second.eof_received()
    assert [wire.cut for wire in wires] == [False, True]
    assert wires[1].written == []
    second.connection_lost(None)
    assert door.open == 1
    first.connection_lost(None)
    assert door.open == 0
