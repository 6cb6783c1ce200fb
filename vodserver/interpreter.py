"""Python's own pauses, kept short: they would hold up the event loop.

A full garbage collection walks over everything that lives: with a catalog of some thousand extents
it took 28 to 79 ms in the middle of serving. What is there when a server is ready stays, so it need
not be looked at again; and what comes and goes with a request is freed when its last reference
goes.

The disks' threads verify what they read, and hold the interpreter meanwhile: the event loop gets it
back when the switch interval is over, and several threads may be before it.
"""

import gc
import sys
from typing import Final

__all__ = ["settle_interpreter"]

_THRESHOLDS: Final = (20_000, 50, 1000)
"""Rarely, and the oldest very rarely: requests leave no cycles, only their errors do."""

_SWITCH_SECONDS: Final = 0.0005
"""With Python's own 5 ms, two threads that verify are a stall of 10 ms."""


def settle_interpreter() -> None:
    """Take all that lives now as here to stay, look for garbage rarely, switch threads often."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
