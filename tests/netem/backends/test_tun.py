import os
import socket
from pathlib import Path

import pytest

from netem.backends.tun import TunBackend


def interfaces():
    return {name for _, name in socket.if_nameindex()}


def test_a_device_that_is_not_there_is_named(tmp_path):
    report = TunBackend(device=str(tmp_path / "tun")).probe()
    assert not report.works
    assert f"no {tmp_path}/tun" in report.reason


def test_a_file_in_the_place_of_the_device_is_no_tun(tmp_path):
    (tmp_path / "tun").write_bytes(b"")
    report = TunBackend(device=str(tmp_path / "tun")).probe()
    assert not report.works
    assert "no TUN device that works" in report.reason


def test_the_trial_interface_is_gone_afterwards():
    if os.geteuid() or not Path("/dev/net/tun").exists():
        pytest.skip("making TUN interfaces needs root and /dev/net/tun")
    before = interfaces()
    report = TunBackend().probe()
    assert report.works, report.reason
    assert interfaces() == before
