"""Processors that do not sleep."""

from pathlib import Path

from netem.awake import processors_awake


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_kernel_is_told_that_no_wait_is_allowed_for_as_long_as_it_is_held(tmp_path):
    device = tmp_path / "latency"
    device.write_bytes(b"")
    before = open_files()
    with processors_awake(device) as awake:
        assert awake
        assert device.read_bytes() == bytes(4)
        assert open_files() == before + 1
    assert open_files() == before


def test_where_that_cannot_be_said_it_is_told(tmp_path):
    with processors_awake(tmp_path / "none") as awake:
        assert not awake
    with processors_awake(tmp_path) as awake:
        assert not awake
