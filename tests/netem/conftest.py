import os
from pathlib import Path

import pytest


@pytest.fixture
def tun():
    """Skips where no TUN network can be made."""
    if os.geteuid() or not Path("/dev/net/tun").exists():
        pytest.skip("a TUN network needs root and /dev/net/tun")
