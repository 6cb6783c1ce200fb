"""Measures how fast a real disk is: its access time t_a and its rate r_d.

A scratch file, random reads of many sizes from it, and a straight line through what they took:
seconds = t_a + bytes / r_d. `fit` is that line; `measure` makes the reads.
"""

import ctypes
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vodserver.errors import CalibrationError, DiskError, StoreUsageError

__all__ = ["Fit", "Measurement", "fit", "measure"]

READ_BYTES: Final = tuple(4096 << (2 * step) for step in range(6))
"""4 KiB to 4 MiB, in steps of four: from all access to nearly all transfer."""

MIN_SCRATCH_BYTES: Final = 64 << 20
"""Less is one corner of a disk, and may fit into its own cache."""

_WRITE_BYTES: Final = 4 << 20
_KEEP_FREE: Final = 0.1
"""Part of the free space that a scratch file leaves."""

_MIN_READS: Final = 48
_PATIENCE_SECONDS: Final = 120.0
"""A disk that has not done the fewest reads by then, beyond the time given, is given up."""

_RESIDENT: Final = 0.05
"""Part of the file that may be in memory all the same: the kernel drops what it can."""

_NORMAL_95: Final = 1.959964
"""95 % of a normal distribution lies within so many standard errors."""

_OUTLIER: Final = 6.0
_MAD_TO_SIGMA: Final = 1.4826
_ROUNDS: Final = 8

_DIRECT: Final = getattr(os, "O_DIRECT", 0)

Progress = Callable[[str, float], None]
"""Told what is done ("writing", "reading") and which part of it is."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fit:
    """A disk's figures, each with the interval that holds it with 95 % confidence.

    Attributes:
        access_seconds: t_a.
        access_interval: its lower and upper bound, seconds.
        rate: r_d, bytes per second.
        rate_interval: its lower and upper bound; the upper is infinite where the reads do not
            show that bytes take time at all.
        reads: how many reads the line is drawn through.
        outliers: how many were left out: a remapped sector, another program's burst.
    """

    access_seconds: float
    access_interval: tuple[float, float]
    rate: float
    rate_interval: tuple[float, float]
    reads: int
    outliers: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured in one directory.

    Attributes:
        path: the directory.
        fit: its disk's figures.
        scratch_bytes: size of the file that was read.
        direct: whether the reads went past the page cache (O_DIRECT); if not, the file was
            dropped from it before.
    """

    path: Path
    fit: Fit
    scratch_bytes: int
    direct: bool


def fit(sizes: Floats, seconds: Floats) -> Fit:
    """Draw seconds = t_a + bytes / r_d through reads.

    Least squares weighted by the inverse square of what is expected, since a read that takes
    longer also varies more; intervals from the heteroscedasticity-consistent covariance (HC3,
    MacKinnon and White 1985), which assumes no law of that variation. Reads that are further off
    than six standard deviations, estimated by the median, are left out.

    Args:
        sizes: bytes of each read, shape (reads,).
        seconds: what each took, > 0, shape (reads,).

    Raises:
        CalibrationError: too few reads, reads of one size, or larger reads that took no longer.
    """
    if len(sizes) < _MIN_READS:
        raise CalibrationError(f"{len(sizes)} reads are too few to tell: give it more --seconds")
    if np.ptp(sizes) == 0:
        raise CalibrationError("reads of one size do not tell access from transfer")
    design = np.column_stack([np.ones(len(sizes)), sizes])
    keep = np.ones(len(sizes), dtype=bool)
    expected = _grouped_medians(sizes, seconds)
    for _ in range(_ROUNDS):
        line = _weighted(design[keep], seconds[keep], expected[keep])[0]
        # A line may dip below 0 on its way: nothing takes less than half of the shortest read.
        expected = np.maximum(design @ line, 0.5 * float(seconds.min()))
        relative = (seconds - expected) / expected
        middle = float(np.median(relative))
        spread = _MAD_TO_SIGMA * float(np.median(np.abs(relative - middle)))
        keep = np.abs(relative - middle) <= _OUTLIER * max(spread, 1e-9)
    line, covariance = _weighted(design[keep], seconds[keep], expected[keep])
    access, slope = (float(value) for value in line)
    access_error, slope_error = (float(e) for e in _NORMAL_95 * np.sqrt(np.diag(covariance)))
    if slope <= 0:
        raise CalibrationError(
            "large reads took no longer than small ones: the disk is too busy or too fast to "
            "tell; give it more --seconds"
        )
    fastest = slope - slope_error
    return Fit(
        access_seconds=max(access, 0.0),
        access_interval=(max(access - access_error, 0.0), max(access + access_error, 0.0)),
        rate=1 / slope,
        rate_interval=(1 / (slope + slope_error), 1 / fastest if fastest > 0 else math.inf),
        reads=int(np.count_nonzero(keep)),
        outliers=int(np.count_nonzero(~keep)),
    )


def _weighted(design: Floats, seconds: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """The line, weighted by 1 / expected², and the HC3 covariance of its two figures."""
    rows = design / expected[:, None]
    wanted = seconds / expected
    scale = np.abs(rows).max(axis=0)  # bytes and ones side by side: keep the matrix well behaved
    rows = rows / scale
    inverse = np.linalg.pinv(rows.T @ rows)
    line = inverse @ (rows.T @ wanted)
    leverage = np.einsum("ij,jk,ik->i", rows, inverse, rows)
    errors = (wanted - rows @ line) / np.maximum(1 - leverage, 1e-9)
    meat = rows.T @ (rows * (errors**2)[:, None])
    return line / scale, (inverse @ meat @ inverse) / np.outer(scale, scale)


def _grouped_medians(sizes: Floats, seconds: Floats) -> Floats:
    """What reads of each size usually take: where the weights begin."""
    found = np.empty(len(sizes))
    order = np.argsort(sizes, kind="stable")
    for part in np.array_split(order, min(6, len(order))):
        found[part] = np.median(seconds[part])
    return np.maximum(found, 1e-9)


def measure(
    directory: Path,
    *,
    seconds: float,
    size: int,
    rng: np.random.Generator,
    min_size: int = MIN_SCRATCH_BYTES,
    clock: Callable[[], float] = time.perf_counter,
    progress: Progress = lambda _what, _part: None,
) -> Measurement:
    """Measure the disk that a directory is on.

    The scratch file has no name from the moment it is made: whatever ends the program, its space
    is free again.

    Args:
        directory: where to write it.
        seconds: how long to read.
        size: bytes to write; fewer are where space is short.
        rng: the file's content, and where it is read.
        min_size: fewer bytes than this are not worth measuring.
        clock: seconds, for the timings.
        progress: told how far it is.

    Raises:
        StoreUsageError: no such directory.
        DiskError: it cannot be written, has too little space, or fails.
        CalibrationError: memory answered instead of the disk, or the timings give no line.
    """
    if not directory.is_dir():
        raise StoreUsageError(f"{directory} is not a directory: name one on the disk to measure")
    try:
        size = _room(directory, size, min_size)
        with _scratch(directory) as scratch:
            _write(scratch, size, rng, progress)
            with _reader(scratch) as (reader, direct):
                _check_not_in_memory(directory, scratch, size)
                timings = _read(
                    *(scratch, reader),
                    size=size,
                    seconds=seconds,
                    rng=rng,
                    clock=clock,
                    progress=progress,
                )
                if not direct:
                    _check_not_in_memory(directory, scratch, size)
    except CalibrationError:
        raise
    except OSError as error:
        if isinstance(error, DiskError):
            raise
        raise DiskError(f"cannot measure {directory}: {error.strerror}") from error
    return Measurement(directory, fit(timings[:, 0], timings[:, 1]), size, direct)


def _room(directory: Path, size: int, min_size: int) -> int:
    """How large the scratch file can be, in whole reads of the largest size."""
    stat = os.statvfs(directory)
    room = int(stat.f_bavail * stat.f_frsize * (1 - _KEEP_FREE))
    if room < min_size:
        raise DiskError(
            f"{directory} has room for {room >> 20} MiB and measuring takes {min_size >> 20} MiB: "
            "free some space"
        )
    return max(min(size, room), min_size) // READ_BYTES[-1] * READ_BYTES[-1]


@contextmanager
def _scratch(directory: Path) -> Iterator[int]:
    path = directory / f".vodserver-calibrate-{secrets.token_hex(8)}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        path.unlink()
        yield fd
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(fd)


def _write(fd: int, size: int, rng: np.random.Generator, progress: Progress) -> None:
    # Chance, so that no file system can compress it, share it or leave holes.
    for offset in range(0, size, _WRITE_BYTES):
        view = memoryview(rng.bytes(min(_WRITE_BYTES, size - offset)))
        while view:
            view = view[os.write(fd, view) :]
        progress("writing", (offset + _WRITE_BYTES) / size)
    os.fsync(fd)


@contextmanager
def _reader(scratch: int) -> Iterator[tuple[int, bool]]:
    """The scratch file again, past the page cache where the file system allows that."""
    _drop(scratch)
    direct = _open_direct(scratch)
    if direct is None:
        yield scratch, False
        return
    try:
        yield direct, True
    finally:
        os.close(direct)


def _open_direct(scratch: int) -> int | None:
    """The scratch file opened with O_DIRECT; None if its file system cannot read so."""
    if not _DIRECT:
        return None
    try:
        fd = os.open(f"/proc/self/fd/{scratch}", os.O_RDONLY | os.O_CLOEXEC | _DIRECT)
    except OSError:
        return None
    try:
        with mmap(-1, READ_BYTES[0]) as memory:
            os.preadv(fd, [memory], 0)
    except OSError:  # some take the flag and refuse the read
        os.close(fd)
        return None
    return fd


def _drop(fd: int) -> None:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)


def _check_not_in_memory(directory: Path, fd: int, size: int) -> None:
    """Refuse to measure memory: the file was dropped from it, so none of it should be there."""
    _drop(fd)
    part = _resident_part(fd, size)
    if part > _RESIDENT:
        raise CalibrationError(
            f"{directory} is kept in memory ({part:.0%} of a file that was dropped from there is "
            "there still), so its disk cannot be measured: name a directory on a real disk"
        )


def _resident_part(fd: int, size: int) -> float:
    """Which part of a file is in memory (mincore(2)); looking does not bring it there."""
    pages = -(-size // PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    with mmap(fd, size) as memory:
        first = ctypes.c_char.from_buffer(memory)
        try:
            failed = ctypes.CDLL(None, use_errno=True).mincore(
                ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), found
            )
        finally:
            del first  # a mapping with a pointer into it cannot be closed
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return float(np.mean(np.frombuffer(memoryview(found), dtype=np.uint8) & 1))


def _read(
    scratch: int,
    reader: int,
    *,
    size: int,
    seconds: float,
    rng: np.random.Generator,
    clock: Callable[[], float],
    progress: Progress,
) -> Floats:
    """Random reads for so many seconds; rows of size and seconds."""
    timings: list[tuple[int, float]] = []
    begin = clock()
    # A page that lies on a page: reads past the page cache need memory that is aligned so.
    with mmap(-1, READ_BYTES[-1]) as memory, memoryview(memory) as view:
        while (spent := clock() - begin) < seconds or len(timings) < _MIN_READS:
            if spent > seconds + _PATIENCE_SECONDS:
                break
            # All sizes equally often, in an order that no drift of the disk can follow.
            for length in rng.permutation(READ_BYTES).tolist():
                offset = int(rng.integers(0, (size - length) // 4096 + 1)) * 4096
                with view[:length] as part:
                    started = clock()
                    count = os.preadv(reader, [part], offset)
                    ended = clock()
                if count != length:
                    raise CalibrationError("the scratch file became shorter while it was read")
                if ended > started:
                    timings.append((length, ended - started))
            # Without O_DIRECT, what was read must not answer the next one that meets it.
            if reader == scratch:
                _drop(scratch)
            progress("reading", min((clock() - begin) / seconds, 1.0) if seconds else 1.0)
    return np.array(timings, dtype=np.float64).reshape(-1, 2)
