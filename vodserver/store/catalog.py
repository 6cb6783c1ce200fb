"""The catalog: which titles there are and where their extents lie (SQLite).

A title exists exactly when its row does. Its extents are written and flushed before; the folder
they go into is noted in `ingests` before the first of them, so that whatever a killed `add` left
behind is found by its name and nothing else is ever deleted.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from vodserver.errors import StoreError, StoreUsageError

__all__ = ["CATALOG_NAME", "FORMAT", "Catalog", "DiskRow", "Extent", "Title"]

CATALOG_NAME: Final = "catalog.sqlite"
FORMAT: Final = 1
"""Version of the store's layout; a store of another version is refused, not guessed at."""

_SCHEMA = """
CREATE TABLE store (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE disks (
    number INTEGER PRIMARY KEY,       -- position, as placement counts
    id TEXT NOT NULL UNIQUE,          -- what the id file inside the directory says
    path TEXT NOT NULL
) STRICT;
CREATE TABLE ingests (folder TEXT PRIMARY KEY) STRICT;
CREATE TABLE titles (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    folder TEXT NOT NULL UNIQUE,      -- of its extents, on every disk
    film_bytes INTEGER NOT NULL,
    duration REAL NOT NULL,           -- seconds
    piece_bytes INTEGER NOT NULL,
    extent_bytes INTEGER NOT NULL,
    info_hash TEXT NOT NULL UNIQUE,
    sha256 TEXT NOT NULL,
    info BLOB NOT NULL,               -- the torrent's info dictionary, bencoded
    timemap BLOB NOT NULL,            -- the torrent's `toast` value, bencoded
    media TEXT NOT NULL,              -- JSON: container, codecs, picture size
    added REAL NOT NULL               -- unix seconds
) STRICT;
CREATE TABLE extents (
    title TEXT NOT NULL REFERENCES titles (id),
    number INTEGER NOT NULL,
    size INTEGER NOT NULL,            -- bytes
    disks TEXT NOT NULL,              -- JSON list of disk numbers, one per replica
    sums BLOB NOT NULL,               -- xxh3-64 of each 64 KiB, big-endian
    PRIMARY KEY (title, number)
) STRICT, WITHOUT ROWID;
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


@dataclass(frozen=True, slots=True)
class DiskRow:
    """A disk as the catalog knows it: its number, its id, and where it was last."""

    number: int
    id: str
    path: Path


class Catalog:
    """The catalog of one store, opened.

    Raises:
        StoreUsageError: the directory holds no store, or one of another format.
        StoreError: the file is damaged or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise StoreUsageError(
                f"there is no store in {path.parent}: make one with "
                f"'vodserver init --store {path.parent} --disk DIR --disk DIR'"
            )
        self._path = path
        with self._translated():
            self._db = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        try:
            with self._translated():
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute("PRAGMA foreign_keys=ON")
                found = self._value("format")
            _check_format(path, found)
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def create(cls, path: Path, store_id: str, allocation: str, disks: Sequence[DiskRow]) -> Self:
        """Write a new, empty catalog.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            db = sqlite3.connect(path, isolation_level=None)
            try:
                db.execute("PRAGMA journal_mode=WAL")
                db.executescript(f"BEGIN; {_SCHEMA}")
                db.executemany(
                    "INSERT INTO store VALUES (?, ?)",
                    [("format", str(FORMAT)), ("id", store_id), ("allocation", allocation)],
                )
                db.executemany(
                    "INSERT INTO disks VALUES (?, ?, ?)",
                    [(disk.number, disk.id, str(disk.path)) for disk in disks],
                )
                db.execute("COMMIT")
            finally:
                db.close()
        except sqlite3.Error as error:
            raise StoreError(f"cannot write the catalog {path}: {error}") from error
        return cls(path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def store_id(self) -> str:
        """The store's own id, which its disks carry too."""
        with self._translated():
            return str(self._value("id"))

    @property
    def allocation(self) -> str:
        """Name of the policy that places new titles."""
        with self._translated():
            return str(self._value("allocation"))

    def disks(self) -> list[DiskRow]:
        """The disks, by number."""
        with self._translated():
            rows = self._db.execute("SELECT number, id, path FROM disks ORDER BY number")
            return [DiskRow(number, disk_id, Path(path)) for number, disk_id, path in rows]

    def titles(self) -> list[Title]:
        """Every title, in the order in which they were added."""
        with self._translated():
            rows = self._db.execute("SELECT * FROM titles ORDER BY added, id")
            names = [column[0] for column in rows.description]
            return [self._title(dict(zip(names, row, strict=True))) for row in rows.fetchall()]

    def _title(self, values: dict[str, Any]) -> Title:
        values["media"] = json.loads(values["media"])
        return Title(**values, extents=self._extents(values["id"]))

    def _extents(self, title: str) -> tuple[Extent, ...]:
        rows = self._db.execute(
            "SELECT number, size, disks, sums FROM extents WHERE title=? ORDER BY number", (title,)
        )
        return tuple(
            Extent(n, size, tuple(json.loads(disks)), sums) for n, size, disks, sums in rows
        )

    def ingests(self) -> list[str]:
        """Folders of ingests that were begun and neither committed nor cleaned up."""
        with self._translated():
            return [folder for (folder,) in self._db.execute("SELECT folder FROM ingests")]

    def begin_ingest(self, folder: str) -> None:
        """Note a folder before anything is written into it."""
        with self._translated():
            self._db.execute("INSERT INTO ingests VALUES (?)", (folder,))

    def forget_ingest(self, folder: str) -> None:
        """Strike a folder whose debris is gone."""
        with self._translated():
            self._db.execute("DELETE FROM ingests WHERE folder=?", (folder,))

    def commit_title(self, title: Title) -> None:
        """Make a title visible, whole, in one transaction, and strike its ingest.

        Raises:
            StoreUsageError: the store has the same film under the same name already.
        """
        values = (
            *(title.id, title.name, title.folder, title.film_bytes, title.duration),
            *(title.piece_bytes, title.extent_bytes, title.info_hash, title.sha256),
            *(title.info, title.timemap, json.dumps(title.media), title.added),
        )
        extents = [
            (title.id, extent.number, extent.size, json.dumps(extent.disks), extent.sums)
            for extent in title.extents
        ]
        with self._translated(), self._transaction():
            taken = self._db.execute(
                "SELECT id FROM titles WHERE info_hash=?", (title.info_hash,)
            ).fetchone()
            if taken is not None:
                raise StoreUsageError(
                    f"the store has this film already, as '{taken[0]}': nothing to add"
                )
            self._db.execute(
                f"INSERT INTO titles VALUES ({','.join('?' * len(values))})",  # noqa: S608 - marks
                values,
            )
            self._db.executemany("INSERT INTO extents VALUES (?, ?, ?, ?, ?)", extents)
            self._db.execute("DELETE FROM ingests WHERE folder=?", (title.folder,))

    def _value(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM store WHERE key=?", (key,)).fetchone()
        return None if row is None else str(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"the catalog {self._path} cannot be used: {error}") from error


def _check_format(path: Path, found: str | None) -> None:
    if found != str(FORMAT):
        raise StoreUsageError(
            f"the store in {path.parent} has format {found}, and this program reads "
            f"format {FORMAT}: use the version that made it"
        )
