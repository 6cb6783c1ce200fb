"""User-mode Linux guests, as tests see them from outside."""

import shutil
from pathlib import Path

import pytest

needs_uml = pytest.mark.skipif(
    shutil.which("linux.uml") is None,
    reason="no linux.uml here (Debian package user-mode-linux)",
)


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
