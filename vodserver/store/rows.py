"""What the catalog tells: titles, extents, disks, and what is not as it should be."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

__all__ = ["BadReplica", "DiskRow", "DiskState", "Extent", "Ingest", "Replica", "Title"]

DiskState = Literal["active", "draining", "lost", "retired"]
"""What a disk is to the store.

active: it gets new extents. draining: it is read, and emptied. lost: it is not coming back; what it
held is to be made again from the other replicas. retired: empty and gone; its number stays taken.
"""


@dataclass(frozen=True, slots=True)
class Extent:
    """A contiguous part of a film, written whole on each of its disks.

    Attributes:
        number: its position in the film.
        size: its size in bytes.
        disks: numbers of the disks that hold a replica, in placement order.
        sums: xxh3-64 of each 64 KiB of it, 8 bytes big-endian each.
    """

    number: int
    size: int
    disks: tuple[int, ...]
    sums: bytes


@dataclass(frozen=True, slots=True)
class Title:
    """A film in the store.

    Attributes:
        id: what URLs call it.
        name: what people call it.
        folder: directory of its extents, on every disk.
        film_bytes: size of the film.
        duration: seconds.
        piece_bytes: bytes of a BitTorrent piece.
        extent_bytes: bytes of every extent but perhaps the last; whole pieces.
        info_hash: SHA-1 of the torrent's info dictionary, hex.
        sha256: of the film, hex.
        info: the torrent's info dictionary, bencoded.
        timemap: the time map, bencoded.
        media: container, codecs and picture size, as probed.
        added: when it was added, unix seconds.
        extents: where its bytes lie, in film order.
        block_roots: the Merkle root of every piece's block hashes, 32 bytes each; empty where
            those were not made yet.
        block_sums: checksums of the file of block hashes, as those of extents.
    """

    id: str
    name: str
    folder: str
    film_bytes: int
    duration: float
    piece_bytes: int
    extent_bytes: int
    info_hash: str
    sha256: str
    info: bytes
    timemap: bytes
    media: dict[str, Any]
    added: float
    extents: tuple[Extent, ...] = field(repr=False)
    block_roots: bytes = field(default=b"", repr=False)
    block_sums: bytes = field(default=b"", repr=False)

    def describe(self) -> dict[str, Any]:
        """What people and programs are told of it wherever it is shown."""
        return {
            "id": self.id,
            "name": self.name,
            "bytes": self.film_bytes,
            "duration_seconds": self.duration,
            "piece_bytes": self.piece_bytes,
            "info_hash": self.info_hash,
            "sha256": self.sha256,
            **self.media,
        }


@dataclass(frozen=True, slots=True)
class DiskRow:
    """A disk as the catalog knows it.

    Attributes:
        number: its position, as placement counts; never used twice.
        id: what the id file inside its directory says.
        path: where it was last.
        state: what it is to the store.
        capacity_bytes: size of its file system when it was taken in; 0 if unknown.
    """

    number: int
    id: str
    path: Path
    state: DiskState = "active"
    capacity_bytes: int = 0


class Replica(NamedTuple):
    """A replica of an extent: the folder of its title, the extent's number, the disk's number."""

    folder: str
    number: int
    disk: int


@dataclass(frozen=True, slots=True)
class BadReplica:
    """A replica known not to hold what was written.

    Attributes:
        replica: which one.
        fault: what is wrong with it, for people.
        found: when that was found, unix seconds.
    """

    replica: Replica
    fault: str
    found: float


@dataclass(frozen=True, slots=True)
class Ingest:
    """A film on its way in, or stopped on its way in.

    Attributes:
        folder: where its extents go.
        plan: JSON of what it takes to go on with it; empty if that is not possible.
        begun: unix seconds.
    """

    folder: str
    plan: str
    begun: float
