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
