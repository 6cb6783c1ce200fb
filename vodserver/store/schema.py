"""The catalog's tables, and how a catalog of an older format becomes one of this."""

import sqlite3
from pathlib import Path
from typing import Final

from vodserver.errors import StoreUsageError

__all__ = ["BLOCKS_NOTE", "FORMAT", "SCHEMA", "check_format", "migrate"]

FORMAT: Final = 3
"""Version of the store's layout; a store of a later version is refused, not guessed at."""

_OLDEST: Final = 1

BLOCKS_NOTE: Final = "blocks"
"""Key of the note that names the folder whose block hashes are made outside an ingest."""

_LIFE = """
CREATE TABLE ingests (
    folder TEXT PRIMARY KEY,
    plan TEXT NOT NULL,               -- JSON; empty if it cannot be resumed
    begun REAL NOT NULL               -- unix seconds
) STRICT;
CREATE TABLE ingested (               -- extents of an ingest that are durable on their disks
    folder TEXT NOT NULL REFERENCES ingests (folder) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    size INTEGER NOT NULL,            -- bytes
    disks TEXT NOT NULL,              -- JSON list of disk numbers
    sums BLOB NOT NULL,               -- as in extents
    PRIMARY KEY (folder, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE debris (folder TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE pending (                -- replicas being written, outside an ingest
    folder TEXT NOT NULL,
    number INTEGER NOT NULL,
    disk INTEGER NOT NULL,
    PRIMARY KEY (folder, number, disk)
) STRICT, WITHOUT ROWID;
CREATE TABLE garbage (                -- replicas no longer placed, whose files may be there still
    folder TEXT NOT NULL,
    number INTEGER NOT NULL,
    disk INTEGER NOT NULL,
    PRIMARY KEY (folder, number, disk)
) STRICT, WITHOUT ROWID;
CREATE TABLE bad (                    -- replicas known not to hold what was written
    folder TEXT NOT NULL,
    number INTEGER NOT NULL,
    disk INTEGER NOT NULL,
    fault TEXT NOT NULL,
    found REAL NOT NULL,              -- unix seconds
    PRIMARY KEY (folder, number, disk)
) STRICT, WITHOUT ROWID;
"""

_BLOCKS = """
ALTER TABLE titles ADD COLUMN block_roots BLOB NOT NULL DEFAULT x'';
ALTER TABLE titles ADD COLUMN block_sums BLOB NOT NULL DEFAULT x'';
"""

_STATE = "CHECK (state IN ('active', 'draining', 'lost', 'retired'))"

SCHEMA: Final = f"""
CREATE TABLE store (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE disks (
    number INTEGER PRIMARY KEY,       -- position, as placement counts; never used twice
    id TEXT NOT NULL UNIQUE,          -- what the id file inside the directory says
    path TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'active' {_STATE},
    capacity_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
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
    added REAL NOT NULL,              -- unix seconds
    block_roots BLOB NOT NULL DEFAULT x'',  -- root of each piece's block hashes; may be missing
    block_sums BLOB NOT NULL DEFAULT x''    -- of the file of block hashes, as in extents
) STRICT;
CREATE TABLE extents (
    title TEXT NOT NULL REFERENCES titles (id),
    number INTEGER NOT NULL,
    size INTEGER NOT NULL,            -- bytes
    disks TEXT NOT NULL,              -- JSON list of disk numbers, one per replica
    sums BLOB NOT NULL,               -- xxh3-64 of each 64 KiB, big-endian
    PRIMARY KEY (title, number)
) STRICT, WITHOUT ROWID;
{_LIFE}
"""
"""Every table of a catalog of format `FORMAT`."""

# What an unfinished ingest of format 1 left cannot be resumed: it becomes debris.
_FROM_1: Final = f"""
ALTER TABLE disks ADD COLUMN state TEXT NOT NULL DEFAULT 'active' {_STATE};
ALTER TABLE disks ADD COLUMN capacity_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ingests RENAME TO ingests_1;
{_LIFE}
INSERT INTO debris SELECT folder FROM ingests_1;
DROP TABLE ingests_1;
"""  # noqa: S608 - all of it is ours

# Titles of format 2 have no block hashes: those are made when the store is served or repaired.
_NOW: Final = f"UPDATE store SET value='{FORMAT}' WHERE key='format';"  # noqa: S608 - ours
_STEPS: Final = {"1": _FROM_1 + _BLOCKS, "2": _BLOCKS}


def check_format(path: Path, found: str | None) -> None:
    """Refuse a catalog that this program cannot read.

    Raises:
        StoreUsageError: its format is later than `FORMAT`, or none.
    """
    if found not in {str(number) for number in range(_OLDEST, FORMAT + 1)}:
        raise StoreUsageError(
            f"the store in {path.parent} has format {found}, and this program reads "
            f"formats {_OLDEST} to {FORMAT}: use the version that made it"
        )


def migrate(db: sqlite3.Connection) -> None:
    """Bring a catalog to `FORMAT`, in one transaction; nothing if it has it.

    Only the process that holds the store's lock may do this.
    """
    (found,) = db.execute("SELECT value FROM store WHERE key='format'").fetchone()
    if found != str(FORMAT):
        try:
            db.executescript(f"BEGIN IMMEDIATE; {_STEPS[found]} {_NOW} COMMIT;")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
