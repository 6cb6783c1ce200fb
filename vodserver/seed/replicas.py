"""Files of replicas: what was verified, held open so that it stays what is read."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

__all__ = ["Held", "Holder", "Stamp", "raise_file_limit"]

_OWN_FILES: Final = Path("/proc/self/fd")
_SPARE_FILES: Final = 512
"""Descriptors that are left to the rest of the process, besides its connections."""


class Stamp(NamedTuple):
    """What tells whether a file is still the one that was verified.

    Rot inside a disk changes none of it; whatever goes through the file system does.
    """

    device: int
    inode: int
    size: int
    changed: int
    """Time of the last change of its contents, ns."""

    @classmethod
    def of(cls, file: Path | int) -> Self:
        """The stamp of a path or an open file.

        Raises:
            OSError: it is not there, or its disk fails.
        """
        found = os.stat(file)  # noqa: PTH116 - pathlib has no descriptors
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(slots=True)
class Held:
    """A verified replica that is on offer.

    Attributes:
        disk: number of the disk that it is on.
        path: where it was found.
        stamp: of the file that was verified.
        file: descriptor that keeps it readable even when it is deleted; None if there are too many.
        since: when it came to be read, event loop's time.
    """

    disk: int
    path: Path
    stamp: Stamp
    file: int | None
    since: float = 0.0

    @property
    def target(self) -> str:
        """What a link to it says."""
        return str(self.path) if self.file is None else str(_OWN_FILES / str(self.file))

    def is_unchanged(self) -> bool:
        """Whether its bytes are, for all that the file system knows, those that were verified."""
        try:
            return Stamp.of(self.path if self.file is None else self.file) == self.stamp
        except OSError:
            return False

    def is_deleted(self) -> bool:
        """Whether it has no name any more, and lives on only because it is open."""
        try:
            return self.file is not None and os.fstat(self.file).st_nlink == 0
        except OSError:
            return True


class Holder:
    """Opens replicas, as many as may be open.

    Attributes:
        most: how many; the others are found by their path when they are read.
        held: how many are open.
    """

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self.held = 0
        self._can_hold = _OWN_FILES.is_dir()

    def hold(self, disk: int, path: Path, stamp: Stamp) -> Held | None:
        """A replica, if the file there is the one that was verified."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if Stamp.of(file) == stamp:
                if self._can_hold and self.held < self.most:
                    self.held += 1
                    kept, file = file, -1
                    return Held(disk, path, stamp, kept)
                return Held(disk, path, stamp, None)
            return None
        finally:
            if file >= 0:
                os.close(file)

    def release(self, replica: Held) -> None:
        """Close it. libtorrent may have it open still, and closes it when told to."""
        if replica.file is not None:
            os.close(replica.file)
            replica.file = None
            self.held -= 1


def raise_file_limit(wanted: int, connections: int) -> int:
    """Let this process open as many files as it may.

    Args:
        wanted: extents to keep open; libtorrent opens each once more.
        connections: sockets of the seed.

    Returns:
        How many extents may be kept open, at most `wanted`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * wanted + connections + _SPARE_FILES
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(0, min(wanted, (soft - connections - _SPARE_FILES) // 2))
