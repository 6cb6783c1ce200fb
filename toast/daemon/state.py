"""The daemon's memory: a SQLite database, and the films' .torrents as files beside it.

A change is on the disk when its call returns: SQLite flushes its log with every commit
(write-ahead log, `synchronous=FULL`), and .torrents are flushed before their film is committed.
The database can be thrown away without losing films: it is made anew from the .torrents.
"""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from toast.daemon.errors import DamagedStateError, NewerStateError, StateError
from toast.daemon.record import FilmRecord

__all__ = ["VERSION", "State", "open_state"]

VERSION: Final = 2
"""Version of the database, kept in its `user_version`."""

_NAME: Final = "state.db"
_SCHEMA: Final = (
    "CREATE TABLE films (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE doomed (folder TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

Migration = Callable[[sqlite3.Connection], None]


def _from_1(db: sqlite3.Connection) -> None:
    """What was sent and asked for is one fact now, with the server's budget in it."""
    row = db.execute("SELECT value FROM facts WHERE name = 'usage'").fetchone()
    if row is not None:
        usage = json.loads(row[0])
        kept = {"day": usage["day"], "uploaded_bytes": usage["uploaded_bytes"]}
        db.execute("INSERT INTO facts VALUES ('consumption', ?)", (json.dumps(kept),))
    db.execute("DELETE FROM facts WHERE name IN ('usage', 'budget')")


MIGRATIONS: Final[dict[int, Migration]] = {1: _from_1}
"""By the version that each starts from."""


class State:
    """What is remembered. Blocking; to be used by one thread at a time, any thread.

    Made by `open_state`.

    Attributes:
        notice: what a person should know about how it was opened, or None.
    """

    def __init__(self, folder: Path, db: sqlite3.Connection, notice: str | None) -> None:
        self.folder = folder
        self.notice = notice
        self._db = db
        self._torrents = folder / "torrents"

    def films(self) -> list[FilmRecord]:
        """Every film, in the order in which they came.

        Raises:
            StateError: a record is damaged.
        """
        rows = self._db.execute("SELECT record FROM films").fetchall()
        return sorted(
            (FilmRecord.from_json(text) for (text,) in rows), key=lambda film: film.added_at
        )

    def torrent(self, film_id: str) -> bytes:
        """The .torrent of a film.

        Raises:
            StateError: it is gone.
        """
        try:
            return (self._torrents / f"{film_id}.torrent").read_bytes()
        except OSError as error:
            raise StateError(
                f"the .torrent of film {film_id} is gone: remove the film and add it anew"
            ) from error

    def torrents(self) -> list[str]:
        """The ids of all .torrents that lie here."""
        return sorted(path.stem for path in self._torrents.glob("*.torrent"))

    def add(self, record: FilmRecord, torrent: bytes) -> None:
        """Remember a new film.

        Raises:
            StateError: the disk refuses.
        """
        path = self._torrents / f"{record.id}.torrent"
        try:
            write_safely(path, torrent)
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error.strerror}") from error
        self.put([record])

    def put(self, records: Iterable[FilmRecord]) -> None:
        """Remember films as they are now, all or none.

        Raises:
            StateError: the disk refuses.
        """
        rows = [(record.id, record.to_json()) for record in records]
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO films VALUES (?, ?)", rows)

    def remove(self, film_id: str, doomed: str | None = None) -> None:
        """Forget a film.

        Args:
            film_id: its id.
            doomed: name of its folder, if that is to be deleted: remembered until it is.

        Raises:
            StateError: the disk refuses.
        """
        with self._transaction():
            self._db.execute("DELETE FROM films WHERE id = ?", (film_id,))
            if doomed is not None:
                self._db.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (doomed,))
        self.drop_torrent(film_id)

    def doomed(self) -> list[str]:
        """Names of folders that are still to be deleted."""
        return [name for (name,) in self._db.execute("SELECT folder FROM doomed")]

    def forget_doomed(self, folder: str) -> None:
        """A folder has been deleted.

        Raises:
            StateError: the disk refuses.
        """
        with self._transaction():
            self._db.execute("DELETE FROM doomed WHERE folder = ?", (folder,))

    def drop_torrent(self, film_id: str) -> None:
        """Delete the .torrent of a film that is no more."""
        with contextlib.suppress(OSError):
            (self._torrents / f"{film_id}.torrent").unlink()

    def fact(self, name: str) -> Any:
        """A value of JSON kept under a name, or None."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put_fact(self, name: str, value: Any) -> None:
        """Keep a value of JSON under a name.

        Raises:
            StateError: the disk refuses.
        """
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value))
            )

    def close(self) -> None:
        """Close it; what was committed stays."""
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Any:
        try:
            with self._db:
                yield
        except sqlite3.Error as error:
            raise StateError(f"the state in {self.folder} cannot be written: {error}") from error


def open_state(folder: Path, *, now: Callable[[], float] = time.time) -> State:
    """Open the state in a folder that this process has locked; begin a new one if there is none.

    A database that cannot be read is set aside as `state.db.corrupt-TIME` and a new one begun;
    `State.notice` then says so.

    Raises:
        StateError: a newer Toast wrote it, or the folder cannot be used.
    """
    notice = None
    try:
        (folder / "torrents").mkdir(exist_ok=True, mode=0o700)
        try:
            db = _connect(folder / _NAME)
        except (sqlite3.DatabaseError, DamagedStateError) as error:
            if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
                raise
            aside = _set_aside(folder / _NAME, now())
            notice = f"the state was damaged ({error}) and is set aside as {aside}"
            db = _connect(folder / _NAME)
    except sqlite3.Error as error:
        raise StateError(f"{folder / _NAME} cannot be used: {error}") from error
    except OSError as error:
        raise StateError(f"{folder} cannot hold the daemon's state: {error.strerror}") from error
    return State(folder, db, notice)


def _is_damage(error: sqlite3.OperationalError) -> bool:
    """Whether it is the file's content: a full or unreadable disk is no reason to begin anew."""
    return error.sqlite_errorcode == sqlite3.SQLITE_ERROR


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False, timeout=5.0)
    try:
        path.chmod(0o600)
        (found,) = db.execute("PRAGMA quick_check").fetchone()
        _require_sound(found)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db)
        for (text,) in db.execute("SELECT record FROM films"):
            FilmRecord.from_json(text)
        for (value,) in db.execute("SELECT value FROM facts"):
            json.loads(value)
    except StateError as error:
        db.close()
        if isinstance(error, NewerStateError):
            raise
        raise DamagedStateError(str(error)) from error
    except (ValueError, TypeError) as error:
        db.close()
        raise DamagedStateError(str(error)) from error
    except BaseException:
        db.close()
        raise
    return db


def _require_sound(found: str) -> None:
    if found != "ok":
        raise DamagedStateError(found.partition("\n")[0])


def _migrate(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise NewerStateError(
            f"a newer Toast wrote this state (version {version}, known: {VERSION}): update Toast,"
            " or name another --state"
        )
    if version == VERSION:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        if version == 0:
            for statement in _SCHEMA:
                db.execute(statement)
        else:
            for step in range(version, VERSION):
                MIGRATIONS[step](db)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _set_aside(path: Path, now: float) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    target, number = path.with_name(f"{path.name}.corrupt-{stamp}"), 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    path.rename(target)
    for end in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + end).rename(target.with_name(target.name + end))
    _flush_folder(path.parent)
    return str(target)


def write_safely(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put a whole file in place, or leave what was there; on the disk when this returns."""
    fresh = path.with_name(f".{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:  # noqa: PTH123  # a descriptor, no path
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
