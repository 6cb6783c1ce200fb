"""A port that is held: ours share it, nobody else gets it."""

import errno
import socket

import pytest

from vodserver.errors import ServeError
from vodserver.workers.port import HeldPort


def share(port, family=socket.AF_INET):
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    made.listen()
    return made


def test_those_who_share_it_can_listen_and_others_cannot():
    with HeldPort("127.0.0.1", 0) as held:
        assert held.port > 0
        with share(held.port), share(held.port):
            pass
        with socket.socket() as stranger, pytest.raises(OSError, match="in use") as caught:
            stranger.bind(("127.0.0.1", held.port))
        assert caught.value.errno == errno.EADDRINUSE


def test_while_nobody_listens_clients_are_refused_and_do_not_wait():
    with HeldPort("127.0.0.1", 0) as held, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", held.port), timeout=5)


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_somebody_serves_on_is_refused_also_if_he_would_share(shared):
    with socket.create_server(("127.0.0.1", 0), reuse_port=shared) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port}.*--port"):
            HeldPort("127.0.0.1", port)


def test_it_is_free_again_when_it_is_closed():
    with HeldPort("localhost", 0) as held:
        pass

    with HeldPort("127.0.0.1", held.port) as again:
        assert again.port == held.port


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host", "x" * 300])
def test_an_address_that_is_not_ours_is_refused_in_a_line(host):
    with pytest.raises(ServeError, match="cannot serve on") as caught:
        HeldPort(host, 0)
    assert "\n" not in str(caught.value)
