"""What is remembered: committed films survive, damage is set aside, old versions are taken over."""

import json
import os
import sqlite3
from dataclasses import replace

import pytest

from toast.daemon.errors import NewerStateError, StateError
from toast.daemon.lock import StateLock
from toast.daemon.record import FilmRecord
from toast.daemon.state import MIGRATIONS, VERSION, open_state, write_safely

RECORD = FilmRecord(
    id="ab" * 20,
    folder="film-abababababab",
    name="film.mp4",
    size_bytes=1000,
    pieces=4,
    origins=("http://127.0.0.1:9/film",),
    trackers=(),
    added_at=1.5,
)
OTHER = replace(RECORD, id="cd" * 20, added_at=0.5)


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def reopened(folder):
    return open_state(folder, now=lambda: 0.0)


def test_what_was_put_is_there_again_oldest_first(folder):
    state = reopened(folder)
    state.add(RECORD, b"torrent")
    state.add(OTHER, b"other")
    state.put([replace(RECORD, position_seconds=7.25, watched=True)])
    state.put_fact("rules", {"most_active": 2})
    state.close()

    state = reopened(folder)
    assert state.notice is None
    assert state.films() == [OTHER, replace(RECORD, position_seconds=7.25, watched=True)]
    assert state.torrent(RECORD.id) == b"torrent"
    assert state.fact("rules") == {"most_active": 2}
    assert state.fact("nothing") is None
    state.close()


def test_a_removal_remembers_which_folder_is_still_to_be_deleted(folder):
    state = reopened(folder)
    state.add(RECORD, b"torrent")
    state.remove(RECORD.id, RECORD.folder)
    state.close()

    state = reopened(folder)
    assert state.films() == []
    assert state.torrents() == []
    assert state.doomed() == [RECORD.folder]
    state.forget_doomed(RECORD.folder)
    assert state.doomed() == []
    state.close()


def test_every_commit_is_flushed(folder):
    """What SQLite promises of a power loss it promises with these two alone."""
    state = reopened(folder)
    assert state._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert state._db.execute("PRAGMA synchronous").fetchone() == (2,)
    state.close()


def test_files_are_for_the_owner_alone(folder):
    state = reopened(folder)
    state.add(RECORD, b"torrent")
    state.close()
    for path in (folder / "state.db", *(folder / "torrents").iterdir()):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b"rubbish" * 1000), id="no database"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:5000]), id="cut short"),
        pytest.param(
            lambda path: path.write_bytes(
                path.read_bytes()[:4096] + b"\x55" * (path.stat().st_size - 4096)
            ),
            id="overwritten",
        ),
    ],
)
def test_a_damaged_database_is_set_aside_and_begun_anew(folder, damage):
    state = reopened(folder)
    state.add(RECORD, b"torrent")
    state.close()
    damage(folder / "state.db")
    before = (folder / "state.db").read_bytes()

    state = reopened(folder)
    (aside,) = folder.glob("state.db.corrupt-19700101T000000Z")
    assert aside.read_bytes() == before
    assert str(aside) in state.notice
    assert state.films() == []
    assert state.torrents() == [RECORD.id]
    state.close()


def alter(folder, statement, *values):
    with sqlite3.connect(folder / "state.db") as db:
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../etc"},
        {"folder": "../elsewhere"},
        {"folder": ""},
        {"position_seconds": "far"},
        {"position_seconds": float("inf")},
        {"behaviour": "leeching"},
        {"paused": 1},
        {"size_bytes": True},
        {"origins": 3},
        {"unknown": 1},
    ],
)
def test_a_record_that_we_never_wrote_is_damage(folder, change):
    state = reopened(folder)
    state.add(RECORD, b"torrent")
    state.close()
    fields = json.loads(RECORD.to_json()) | change
    alter(folder, "UPDATE films SET record = ?", json.dumps(fields))

    state = reopened(folder)
    assert "set aside" in state.notice
    assert state.films() == []
    state.close()


def test_a_second_damage_in_one_second_keeps_both(folder):
    for _ in range(2):
        (folder / "state.db").write_bytes(b"rubbish" * 1000)
        reopened(folder).close()
    assert len(list(folder.glob("state.db.corrupt-*"))) == 2


def test_the_state_of_a_newer_toast_is_left_alone(folder):
    reopened(folder).close()
    alter(folder, f"PRAGMA user_version = {VERSION + 1}")
    before = (folder / "state.db").read_bytes()
    with pytest.raises(NewerStateError, match="update Toast"):
        reopened(folder)
    assert (folder / "state.db").read_bytes() == before
    assert list(folder.glob("*corrupt*")) == []


# What version 1 wrote: it counted uploads and what was asked of servers by day, as one fact.
VERSION_1 = f"""
CREATE TABLE films (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE doomed (folder TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO films VALUES ('{RECORD.id}', '{RECORD.to_json()}');
INSERT INTO facts VALUES ('rules', '{{"most_active": 5}}');
INSERT INTO facts VALUES ('usage', '{{"day": "2026-01-01", "uploaded_bytes": 7}}');
PRAGMA user_version = 1;
"""


def test_version_1_is_taken_over_with_all_that_it_knew(folder):
    db = sqlite3.connect(folder / "state.db")
    db.executescript(VERSION_1)
    db.close()

    state = reopened(folder)
    assert state.notice is None
    assert state.films() == [RECORD]
    assert state.fact("rules") == {"most_active": 5}
    assert state.fact("usage") is None
    assert state.fact("consumption")["uploaded_bytes"] == 7
    state.close()
    with sqlite3.connect(folder / "state.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    db.close()


def test_every_version_can_be_taken_over():
    assert sorted(MIGRATIONS) == list(range(1, VERSION))


def test_a_folder_that_cannot_be_one_is_told_in_a_line(folder):
    (folder / "torrents").write_text("in the way")
    with pytest.raises(StateError, match="cannot hold"):
        reopened(folder)


def test_a_file_is_whole_or_not_there(folder):
    write_safely(folder / "token", b"one")
    write_safely(folder / "token", b"two")
    assert (folder / "token").read_bytes() == b"two"
    assert [path.name for path in folder.iterdir()] == ["token"]


def test_one_daemon_per_state(folder):
    with StateLock(folder / "state"), pytest.raises(StateError, match="already uses"):
        StateLock(folder / "state")
    with StateLock(folder / "state"):  # let go of, it can be had again
        pass


def test_the_second_daemon_is_told_who_the_first_is(folder):
    with StateLock(folder), pytest.raises(StateError, match=f"process {os.getpid()}"):
        StateLock(folder)
