"""Connections by client."""

import pytest

from vodserver.http.limits import AddressLimit, client_network


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a name", "a name"),
        ("", ""),
    ],
)
def test_who_counts_as_one_client(address, client):
    assert client_network(address) == client


def test_a_client_has_so_many_connections_at_a_time():
    limit = AddressLimit(2)

    assert limit.enter("192.0.2.1")
    assert limit.enter("::ffff:192.0.2.1")
    assert not limit.enter("192.0.2.1")
    assert limit.enter("192.0.2.2")
    assert limit.refused == 1

    limit.leave("192.0.2.1")
    assert limit.enter("192.0.2.1")


def test_nothing_is_kept_of_those_who_left():
    limit = AddressLimit(None)
    for number in range(1000):
        assert limit.enter(f"192.0.2.{number % 250}")
    assert limit.clients == 250
    for number in range(1000):
        limit.leave(f"192.0.2.{number % 250}")

    assert limit.clients == 0
    assert not limit._open
