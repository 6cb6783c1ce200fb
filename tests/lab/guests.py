"""User-mode Linux guests, as tests see them from outside."""

from pathlib import Path

import pytest

from netem.backends.uml import UmlBackend

_missing = UmlBackend().missing()
needs_uml = pytest.mark.skipif(_missing is not None, reason=str(_missing))


def guests():
    """Processes of guests on this machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "comm").read_text().startswith("linux.uml"):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found
