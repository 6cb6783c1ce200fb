"""The daemon as systemd meets it: readiness, watchdog, its end; and what it does not let happen."""

import asyncio
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toast.daemon.errors import StateError
from toast.daemon.service import local_zone
from toast.daemon.settings import default_state
from toast.gateway import GatewayError

PROGRAM = Path(sys.executable).parent / "toast"


@pytest.mark.slow
async def test_systemd_hears_of_readiness_life_and_end(tmp_path):
    """The real program, and a socket of ours in the place of systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        environ = os.environ | {
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "WATCHDOG_USEC": "300000",
        }
        options = ["--state", tmp_path / "state", "--port", "0", "--listen", "127.0.0.1"]
        process = await asyncio.create_subprocess_exec(
            PROGRAM, "daemon", *options, env=environ, stderr=asyncio.subprocess.PIPE
        )
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            first = await loop.sock_recv(systemd, 200)
            assert first.splitlines()[0] == b"READY=1"
            for _ in range(3):
                assert await loop.sock_recv(systemd, 200) == b"WATCHDOG=1"
            process.terminate()
            while (message := await loop.sock_recv(systemd, 200)) == b"WATCHDOG=1":
                pass
            assert message == b"STOPPING=1"
            _, complaints = await process.communicate()
    assert process.returncode == 0
    assert complaints.count(b"\n") == 1, complaints


async def test_a_taken_port_is_told_and_lets_go_of_all(house, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(GatewayError, match="cannot listen"):
            await house.open(port=port)
    await house.open()  # the state's lock was let go of


async def test_the_same_state_is_used_once(house):
    await house.open()
    other = type(house)(house.state)
    with pytest.raises(StateError, match="already uses"):
        await other.open()
    assert (await house.ask("GET", "/status"))[0] == 200


def test_where_state_belongs(monkeypatch):
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/people/anna")
    assert default_state() == Path("/people/anna/.local/state/toast")
    monkeypatch.setenv("XDG_STATE_HOME", "/people/anna/state")
    assert default_state() == Path("/people/anna/state/toast")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/toast:/var/lib/other")
    assert default_state() == Path("/var/lib/toast")


def test_the_time_zone_is_that_of_the_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Amsterdam")
    assert str(local_zone()) == "Europe/Amsterdam"
    monkeypatch.setenv("TZ", "Nowhere/Land")
    with pytest.raises(StateError, match="Nowhere/Land"):
        local_zone()
    monkeypatch.delenv("TZ")
    assert local_zone().utcoffset(datetime.now(UTC)) is not None
