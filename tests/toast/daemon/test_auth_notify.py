"""The token and its cookie; systemd's notifications, with a socket of our own in its place."""

import socket

import pytest

from toast.daemon.auth import Token, read_token
from toast.daemon.errors import StateError
from toast.daemon.notify import Notifier


def test_the_token_stays_the_same_and_is_for_the_owner_alone(tmp_path):
    first, second = Token(tmp_path), Token(tmp_path)
    assert first.text == second.text == read_token(tmp_path)
    assert len(first.text) >= 40
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_who_is_let_in(tmp_path):
    token = Token(tmp_path)
    assert token.admits(f"Bearer {token.text}", None)
    assert token.admits(f"bearer  {token.text}", None)
    assert token.admits(None, token.cookie)
    assert not token.admits(None, None)
    assert not token.admits("Bearer ", None)
    assert not token.admits(f"Basic {token.text}", None)
    assert not token.admits("Bearer wrong", token.cookie), "a wrong token is not mended by a cookie"
    assert not token.admits(f"Bearer {token.cookie}", None), "the cookie is no token"
    assert not token.admits(None, token.text), "and the token no cookie"
    assert not token.admits(None, "\udcff")


@pytest.mark.parametrize("text", ["", "short", "x" * 300, "\xff" * 40])
def test_a_file_that_holds_no_token_is_told(tmp_path, text):
    (tmp_path / "token").write_text(text, encoding="latin-1")
    with pytest.raises(StateError):
        read_token(tmp_path)


def test_no_token_is_told(tmp_path):
    with pytest.raises(StateError, match="is a daemon running"):
        read_token(tmp_path)


@pytest.fixture(params=["path", "abstract"])
def systemd(request, tmp_path):
    """A socket such as systemd's, and its name as the environment has it."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name.replace("@", "\0", 1))
        listening.settimeout(5)
        yield listening, name


def test_messages_reach_systemd(systemd):
    listening, name = systemd
    Notifier({"NOTIFY_SOCKET": name}).send("READY=1", "STATUS=well")
    assert listening.recv(100) == b"READY=1\nSTATUS=well"


def test_without_systemd_nothing_is_sent(tmp_path):
    Notifier({}).send("READY=1")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).send("READY=1")


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_fed_only_if_it_watches_us(environ, seconds):
    assert Notifier(environ, pid=7).watchdog_seconds == seconds
