"""The catalog: which titles there are and where their extents lie (SQLite).

A title exists exactly when its row does. Every file is noted before it is written and struck after
it is gone: extents of a film on its way in by their folder (`ingests`), replicas written later
(`pending`), replicas that were moved away (`garbage`), folders of titles that were removed
(`debris`). So whatever a crash left is found by its name, and nothing else is ever deleted.

A connection belongs to the thread that made it. A process may have several, one per thread, each
its own `Catalog` of the same file: readers never wait (write-ahead log), a writer waits for the
other writer's transaction, which is always short. What one commits the others see at their next
call.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from vodserver.errors import StoreError, StoreUsageError
from vodserver.store.database import CatalogFile
from vodserver.store.rows import (
    BadReplica,
    DiskRow,
    DiskState,
    Extent,
    Ingest,
    Replica,
    Title,
)
from vodserver.store.schema import BLOCKS_NOTE, FORMAT, SCHEMA

__all__ = [
    "CATALOG_NAME",
    "FORMAT",
    "BadReplica",
    "Catalog",
    "DiskRow",
    "DiskState",
    "Extent",
    "Ingest",
    "Replica",
    "Title",
]

CATALOG_NAME: Final = "catalog.sqlite"

_OF_REPLICA: Final = "folder=? AND number=? AND disk=?"


class Catalog(CatalogFile):
    """The catalog of one store, opened.

    Attributes:
        path: its file.

    Raises:
        StoreUsageError: the directory holds no store, or one of another format.
        StoreError: the file is damaged or cannot be read.
    """

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
                db.executescript(f"BEGIN; {SCHEMA}")
                db.executemany(
                    "INSERT INTO store VALUES (?, ?)",
                    [("format", str(FORMAT)), ("id", store_id), ("allocation", allocation)],
                )
                db.executemany(_ADD_DISK, [_disk_values(disk) for disk in disks])
                db.execute("COMMIT")
            finally:
                db.close()
        except sqlite3.Error as error:
            raise StoreError(f"cannot write the catalog {path}: {error}") from error
        return cls(path)

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

    # Disks

    def disks(self) -> list[DiskRow]:
        """Every disk that the store ever had, by number."""
        with self._translated():
            rows = self._db.execute("SELECT * FROM disks ORDER BY number").fetchall()
        # A catalog of format 1, listed but not yet migrated, has no state and no capacity.
        return [
            DiskRow(number, disk_id, Path(path), *rest) for number, disk_id, path, *rest in rows
        ]

    def add_disk(self, row: DiskRow) -> None:
        """Take in another disk; its number is how many there ever were.

        Raises:
            StoreError: the number is another, or the id was used before.
        """
        with self._translated(), self._transaction():
            (count,) = self._db.execute("SELECT COUNT(*) FROM disks").fetchone()
            if row.number != count:
                raise StoreError(f"the next disk has the number {count}, not {row.number}")
            self._db.execute(_ADD_DISK, _disk_values(row))

    def set_disk(
        self,
        number: int,
        *,
        state: DiskState | None = None,
        path: Path | None = None,
        id: str | None = None,  # noqa: A002 - the column's name
        capacity_bytes: int | None = None,
    ) -> None:
        """Change what is given of a disk's row.

        Raises:
            StoreUsageError: no such disk, or it shall be retired and holds replicas still.
        """
        changes = {
            "state": state,
            "path": None if path is None else str(path),
            "id": id,
            "capacity_bytes": capacity_bytes,
        }
        with self._translated(), self._transaction():
            if state == "retired" and (held := self._replicas_on(number)):
                raise StoreUsageError(f"disk {number} still holds {held} replicas: drain it first")
            if not self._db.execute("SELECT 1 FROM disks WHERE number=?", (number,)).fetchone():
                raise StoreUsageError(f"the store has no disk {number}")
            for column, value in changes.items():
                if value is not None:
                    self._db.execute(
                        f"UPDATE disks SET {column}=? WHERE number=?",  # noqa: S608 - names above
                        (value, number),
                    )

    def used_bytes(self) -> dict[int, int]:
        """Bytes of the extents that each disk holds by its number, unfinished ingests included."""
        with self._translated():
            rows = self._db.execute(
                "SELECT disk.value, SUM(size) FROM "
                "(SELECT size, disks FROM extents UNION ALL SELECT size, disks FROM ingested) "
                "AS held, json_each(held.disks) AS disk GROUP BY disk.value"
            )
            return {int(number): int(total) for number, total in rows}

    def _replicas_on(self, number: int) -> int:
        (held,) = self._db.execute(
            "SELECT COUNT(*) FROM extents, json_each(extents.disks) AS disk WHERE disk.value=?",
            (number,),
        ).fetchone()
        return int(held)

    # Titles

    def titles(self) -> list[Title]:
        """Every title, in the order in which they were added."""
        with self._translated(), self._snapshot():
            rows = self._db.execute("SELECT * FROM titles ORDER BY added, id")
            names = [column[0] for column in rows.description]
            return [self._title(dict(zip(names, row, strict=True))) for row in rows.fetchall()]

    def title(self, title_id: str) -> Title | None:
        """The title of this id as it is in the catalog now, if there is one."""
        with self._translated(), self._snapshot():
            rows = self._db.execute("SELECT * FROM titles WHERE id=?", (title_id,))
            names = [column[0] for column in rows.description]
            row = rows.fetchone()
            return None if row is None else self._title(dict(zip(names, row, strict=True)))

    def title_ids(self) -> set[str]:
        """The ids that are taken."""
        with self._translated():
            return {title_id for (title_id,) in self._db.execute("SELECT id FROM titles")}

    def _title(self, values: dict[str, Any]) -> Title:
        values["media"] = json.loads(values["media"])
        rows = self._db.execute(
            "SELECT number, size, disks, sums FROM extents WHERE title=? ORDER BY number",
            (values["id"],),
        )
        return Title(**values, extents=tuple(_extent(*row) for row in rows))

    def commit_title(self, title: Title) -> None:
        """Make a title visible, whole, in one transaction, and strike its ingest.

        Raises:
            StoreUsageError: the store has the same film under the same name already.
            StoreError: one of its disks was retired meanwhile.
        """
        values = (
            *(title.id, title.name, title.folder, title.film_bytes, title.duration),
            *(title.piece_bytes, title.extent_bytes, title.info_hash, title.sha256),
            *(title.info, title.timemap, json.dumps(title.media), title.added),
            *(title.block_roots, title.block_sums),
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
            self._check_not_retired({disk for extent in title.extents for disk in extent.disks})
            self._db.execute(
                f"INSERT INTO titles VALUES ({','.join('?' * len(values))})",  # noqa: S608 - marks
                values,
            )
            self._db.executemany("INSERT INTO extents VALUES (?, ?, ?, ?, ?)", extents)
            self._db.execute("DELETE FROM ingests WHERE folder=?", (title.folder,))

    def hashed(self) -> set[str]:
        """Folders of the titles that have block hashes."""
        with self._translated():
            rows = self._db.execute("SELECT folder FROM titles WHERE block_roots!=x''")
            return {folder for (folder,) in rows}

    def set_block_hashes(self, folder: str, roots: bytes, sums: bytes) -> None:
        """Note the block hashes of a title, which are in their file now, and that they are made.

        Raises:
            StoreUsageError: there is no title of this folder (it may have been removed meanwhile).
        """
        with self._translated(), self._transaction():
            changed = self._db.execute(
                "UPDATE titles SET block_roots=?, block_sums=? WHERE folder=?",
                (roots, sums, folder),
            )
            if not changed.rowcount:
                raise StoreUsageError(f"there is no title in folder '{folder}'")
            self.set_note(BLOCKS_NOTE, None)

    def remove_title(self, title_id: str) -> Title:
        """Make a title vanish, and note its folder as debris, in one transaction.

        Returns:
            What it was; `removal.clear_debris` removes its files.

        Raises:
            StoreUsageError: there is no such title.
        """
        with self._translated(), self._transaction():
            title = self.title(title_id)
            if title is None:
                raise StoreUsageError(
                    f"there is no title '{title_id}': 'vodserver list' shows those there are"
                )
            self._db.execute("DELETE FROM extents WHERE title=?", (title_id,))
            self._db.execute("DELETE FROM titles WHERE id=?", (title_id,))
            self._db.execute("DELETE FROM bad WHERE folder=?", (title.folder,))
            self._db.execute("INSERT OR IGNORE INTO debris VALUES (?)", (title.folder,))
            return title

    # Where the replicas are

    def set_extent_disks(self, title_id: str, number: int, disks: Sequence[int]) -> None:
        """Say where the replicas of an extent are from now on; see `set_extents_disks`."""
        self.set_extents_disks(title_id, {number: disks})

    def set_extents_disks(self, title_id: str, disks: Mapping[int, Sequence[int]]) -> None:
        """Say where the replicas of some extents are from now on, in one transaction.

        A replica that is no longer placed becomes garbage in the same transaction, and one that is
        placed is neither garbage nor pending any more.

        Args:
            title_id: the extents' title.
            disks: disk numbers by extent number.

        Raises:
            StoreUsageError: no such title or extent (it may have been removed meanwhile).
            StoreError: one of the disks was retired meanwhile.
        """
        with self._translated(), self._transaction():
            for number, placed in disks.items():
                self._place(title_id, number, placed)

    def commit_replica(
        self, title_id: str, number: int, disks: Sequence[int], *, folder: str, disk: int
    ) -> None:
        """Say where an extent's replicas are, one of them just written, in one transaction.

        The new one is no longer pending and no longer bad. Raises as `set_extents_disks` does.
        """
        with self._translated(), self._transaction():
            self._place(title_id, number, disks)
            for table in ("pending", "bad"):
                self._strike(table, Replica(folder, number, disk))

    def _place(self, title_id: str, number: int, disks: Sequence[int]) -> None:
        row = self._db.execute(
            "SELECT disks, folder FROM extents JOIN titles ON titles.id=title "
            "WHERE title=? AND number=?",
            (title_id, number),
        ).fetchone()
        if row is None:
            raise StoreUsageError(f"there is no extent {number} of a title '{title_id}'")
        if not disks or len(set(disks)) != len(disks):
            raise StoreError(f"extent {number} of '{title_id}' cannot be placed on disks {disks}")
        self._check_not_retired(set(disks))
        self._db.execute(
            "UPDATE extents SET disks=? WHERE title=? AND number=?",
            (json.dumps([int(disk) for disk in disks]), title_id, number),
        )
        for disk in set(json.loads(row[0])) - set(disks):
            gone = Replica(row[1], number, disk)
            self._strike("bad", gone)
            self._db.execute("INSERT OR IGNORE INTO garbage VALUES (?, ?, ?)", gone)
        for disk in disks:
            self._strike("garbage", Replica(row[1], number, disk))

    def _check_not_retired(self, disks: set[int]) -> None:
        usable = {row.number for row in self.disks() if row.state != "retired"}
        if gone := disks - usable:
            raise StoreError(f"disk {min(gone)} was taken out of the store meanwhile: try again")

    def places(self, replica: Replica) -> bool:
        """Whether some title has this replica."""
        with self._translated():
            row = self._db.execute(
                "SELECT disks FROM extents JOIN titles ON titles.id=title "
                "WHERE folder=? AND number=?",
                (replica.folder, replica.number),
            ).fetchone()
            return row is not None and replica.disk in json.loads(row[0])

    def pending(self) -> list[Replica]:
        """Replicas that were begun outside an ingest and neither committed nor finished."""
        return self._replicas("pending")

    def begin_write(self, folder: str, number: int, disk: int) -> None:
        """Note a replica before anything of it is written, outside an ingest."""
        with self._translated():
            self._db.execute(
                "INSERT OR IGNORE INTO pending VALUES (?, ?, ?)", (folder, number, disk)
            )

    def finish_write(self, folder: str, number: int, disk: int) -> None:
        """Strike a replica that is where it was placed already, or whose file is gone."""
        with self._translated():
            self._strike("pending", Replica(folder, number, disk))

    def garbage(self) -> list[Replica]:
        """Replicas that are no longer placed and whose files may be there still."""
        return self._replicas("garbage")

    def is_garbage(self, replica: Replica) -> bool:
        """Whether this replica is garbage at this moment."""
        with self._translated():
            rows = self._db.execute(f"SELECT 1 FROM garbage WHERE {_OF_REPLICA}", replica)  # noqa: S608 - ours
            return rows.fetchone() is not None

    def note_garbage(self, folder: str, number: int, disk: int) -> None:
        """Note a replica that is no longer placed; moves do this themselves."""
        with self._translated():
            self._db.execute(
                "INSERT OR IGNORE INTO garbage VALUES (?, ?, ?)", (folder, number, disk)
            )

    def forget_garbage(self, folder: str, number: int, disk: int) -> None:
        """Strike a replica whose file is gone."""
        with self._translated():
            self._strike("garbage", Replica(folder, number, disk))

    def bad(self) -> list[BadReplica]:
        """Replicas known not to hold what was written."""
        with self._translated():
            rows = self._db.execute("SELECT * FROM bad ORDER BY found").fetchall()
            return [BadReplica(Replica(*row[:3]), row[3], row[4]) for row in rows]

    def note_bad(self, folder: str, number: int, disk: int, fault: str, found: float) -> None:
        """Note what is wrong with a replica, and when that was found (unix seconds)."""
        with self._translated():
            self._db.execute(
                "INSERT OR IGNORE INTO bad VALUES (?, ?, ?, ?, ?)",
                (folder, number, disk, fault, found),
            )

    def forget_bad(self, folder: str, number: int, disk: int) -> None:
        """Strike a replica that is good again, or no more."""
        with self._translated():
            self._strike("bad", Replica(folder, number, disk))

    def _replicas(self, table: str) -> list[Replica]:
        with self._translated():
            rows = self._db.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - ours
            return [Replica(*row) for row in rows]

    def _strike(self, table: str, replica: Replica) -> None:
        self._db.execute(f"DELETE FROM {table} WHERE {_OF_REPLICA}", replica)  # noqa: S608 - ours

    # Films on their way in, and what is to be removed

    def ingests(self) -> list[str]:
        """Folders of ingests that were begun and neither committed nor abandoned."""
        return [ingest.folder for ingest in self.unfinished()]

    def unfinished(self) -> list[Ingest]:
        """Ingests that were begun and neither committed nor abandoned, oldest first."""
        with self._translated():
            rows = self._db.execute("SELECT folder, plan, begun FROM ingests ORDER BY begun")
            return [Ingest(*row) for row in rows.fetchall()]

    def begin_ingest(self, folder: str, plan: str = "", begun: float = 0.0) -> None:
        """Note a folder before anything is written into it.

        Args:
            folder: where the film's extents will go, on every disk.
            plan: JSON of what it takes to go on after a kill; empty if that is not possible.
            begun: unix seconds.
        """
        with self._translated():
            self._db.execute("INSERT INTO ingests VALUES (?, ?, ?)", (folder, plan, begun))

    def ingested(self, folder: str) -> list[Extent]:
        """The extents of an unfinished ingest that were made durable, in film order."""
        with self._translated():
            rows = self._db.execute(
                "SELECT number, size, disks, sums FROM ingested WHERE folder=? ORDER BY number",
                (folder,),
            )
            return [_extent(*row) for row in rows.fetchall()]

    def note_ingested(self, folder: str, extent: Extent) -> None:
        """Note an extent that is durable on its disks, where it is no garbage any more."""
        values = (extent.number, extent.size, json.dumps(extent.disks), extent.sums)
        with self._translated(), self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO ingested VALUES (?, ?, ?, ?, ?)", (folder, *values)
            )
            for disk in extent.disks:
                self._strike("garbage", Replica(folder, extent.number, disk))

    def abandon_ingest(self, folder: str) -> None:
        """Give an ingest up: what it wrote is debris from now on."""
        with self._translated(), self._transaction():
            self._db.execute("DELETE FROM ingests WHERE folder=?", (folder,))
            self._db.execute("INSERT OR IGNORE INTO debris VALUES (?)", (folder,))

    def forget_ingest(self, folder: str) -> None:
        """Strike an ingest whose files are gone."""
        with self._translated():
            self._db.execute("DELETE FROM ingests WHERE folder=?", (folder,))

    def debris(self) -> list[str]:
        """Folders of no title, to be removed from every disk."""
        with self._translated():
            return [folder for (folder,) in self._db.execute("SELECT folder FROM debris")]

    def forget_debris(self, folder: str) -> None:
        """Strike a folder that is gone from every disk."""
        with self._translated():
            self._db.execute("DELETE FROM debris WHERE folder=?", (folder,))


_ADD_DISK: Final = "INSERT INTO disks VALUES (?, ?, ?, ?, ?)"


def _disk_values(row: DiskRow) -> tuple[int | str, ...]:
    return (row.number, row.id, str(row.path), row.state, row.capacity_bytes)


def _extent(number: int, size: int, disks: str, sums: bytes) -> Extent:
    return Extent(number, size, tuple(json.loads(disks)), sums)
