import fcntl
import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def tun():
    """Skips where no TUN network can be made."""
    if os.geteuid() or not Path("/dev/net/tun").exists():
        pytest.skip("a TUN network needs root and /dev/net/tun")


@pytest.fixture(autouse=True, scope="module")
def one_at_a_time():
    """Tests clear away networks that a killed process left, and must not take others' for such."""
    path = Path(tempfile.gettempdir()) / f"toast-netem-tests-{os.geteuid()}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
