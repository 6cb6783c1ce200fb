"""The catalog's file: opened, brought to this format, used in transactions."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from vodserver.errors import StoreError, StoreUsageError
from vodserver.store.schema import check_format, migrate

__all__ = ["CatalogFile"]

_BUSY_SECONDS: Final = 20.0
"""Far longer than any transaction: who waits that long has met a hung process."""


class CatalogFile:
    """A connection to a catalog, for the thread that makes it.

    Attributes:
        path: its file.

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
        self.path = path
        with self._translated():
            self._db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS)
        try:
            with self._translated():
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute("PRAGMA foreign_keys=ON")
                found = self._value("format")
            check_format(path, found)
        except BaseException:
            self._db.close()
            raise

    def migrate(self) -> None:
        """Bring a catalog of an older format to this one; for the holder of the store's lock."""
        with self._translated():
            migrate(self._db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_note(self, key: str) -> str | None:
        """What was noted under this key, if anything."""
        with self._translated():
            return self._value(f"note:{key}")

    def set_note(self, key: str, value: str | None) -> None:
        """Note something under a key, such as how far a scrub has come; None strikes it."""
        with self._translated():
            if value is None:
                self._db.execute("DELETE FROM store WHERE key=?", (f"note:{key}",))
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO store VALUES (?, ?)", (f"note:{key}", value)
                )

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file itself; nothing if it is sound."""
        with self._translated():
            found = [str(line) for (line,) in self._db.execute("PRAGMA integrity_check(20)")]
            broken = self._db.execute("PRAGMA foreign_key_check").fetchall()
        faults = [] if found == ["ok"] else found
        return [*faults, *(f"table {row[0]}: a row refers to none in {row[2]}" for row in broken)]

    def _value(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM store WHERE key=?", (key,)).fetchone()
        return None if row is None else str(row[0])

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Reads that belong together see one state, whatever others commit between them."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"the catalog {self.path} cannot be used: {error}") from error
