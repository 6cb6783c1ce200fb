"""Files that stay in memory while something is measured that is said to come from there."""

import ctypes
import mmap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

__all__ = ["held"]


@contextmanager
def held(paths: Iterable[Path]) -> Iterator[int]:
    """Lock files in memory while the block lasts (mlock(2)); how many bytes could not be.

    A machine may take away what is cached at any time, some do so all the time (DAMON), and then
    it is a disk that is measured. Those that may lock little lock what they may.

    Args:
        paths: the files, best in memory already.
    """
    lock = ctypes.CDLL(None, use_errno=True).mlock
    lock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    refused = 0
    with ExitStack() as stack:
        for path in paths:
            size = path.stat().st_size
            if not size:
                continue
            with path.open("rb") as file:
                view = stack.enter_context(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ))
            # Only numpy tells where a mapping is that may not be written to. The mapping holds the
            # lock, and gives it back when it is closed.
            address = np.frombuffer(view, np.uint8).ctypes.data
            if lock(address, size):
                refused += size
        yield refused
