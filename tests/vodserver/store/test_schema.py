"""Catalogs of older formats: listed as they are, brought to this one, or refused."""

import dataclasses
import re
import sqlite3

import pytest

from tests.vodserver.store.records import film
from vodserver.errors import StoreError, StoreUsageError
from vodserver.store.catalog import Catalog


def test_a_catalog_of_another_format_is_refused(catalog, path):
    catalog.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE store SET value='99' WHERE key='format'")
    db.close()

    with pytest.raises(StoreUsageError, match=r"format 99.*reads formats 1 to 3"):
        Catalog(path)


FORMAT_1 = """
CREATE TABLE store (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE disks (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL) STRICT;
CREATE TABLE ingests (folder TEXT PRIMARY KEY) STRICT;
INSERT INTO store VALUES ('format', '1'), ('id', 'store-id'), ('allocation', 'rda');
INSERT INTO disks VALUES (0, 'd0', '/a'), (1, 'd1', '/b');
INSERT INTO ingests VALUES ('killed');
"""


BLOCK_COLUMNS = re.compile(r",[^,]*\s+block_roots [^,]*,[^,]*\s+block_sums .*(?=\n\))")
OLD_COLUMNS = (
    "id, name, folder, film_bytes, duration, piece_bytes, extent_bytes, info_hash, sha256, info, "
    "timemap, media, added"
)


@pytest.fixture
def old(path, catalog):
    """A catalog of format 1 with a title in it and an ingest that was killed."""
    catalog.commit_title(film())
    (titles, extents) = catalog._db.execute(
        "SELECT sql FROM sqlite_master WHERE name IN ('titles', 'extents') ORDER BY name DESC"
    ).fetchall()
    older = path.with_name("old.sqlite")
    db = sqlite3.connect(older, isolation_level=None)
    db.executescript(
        f"PRAGMA journal_mode=WAL; {FORMAT_1} {without_blocks(titles[0])}; {extents[0]};"
    )
    db.execute("ATTACH ? AS new", (str(path),))
    db.execute(f"INSERT INTO titles SELECT {OLD_COLUMNS} FROM new.titles")
    db.execute("INSERT INTO extents SELECT * FROM new.extents")
    db.close()
    return older


def without_blocks(sql):
    changed, count = BLOCK_COLUMNS.subn("", sql)
    assert count == 1
    return changed


@pytest.fixture
def second(path, catalog):
    """A catalog of format 2: as one of format 3, without block hashes."""
    catalog.commit_title(dataclasses.replace(film(), block_roots=b"r" * 32, block_sums=b"s" * 8))
    catalog.begin_ingest("killed", "{}", 7.0)
    catalog.close()
    db = sqlite3.connect(path, isolation_level=None)
    for column in ("block_roots", "block_sums"):
        db.execute(f"ALTER TABLE titles DROP COLUMN {column}")
    db.execute("UPDATE store SET value='2' WHERE key='format'")
    db.close()
    return path


def test_a_catalog_of_format_2_keeps_all_it_has_and_its_titles_have_no_block_hashes(second):
    with Catalog(second) as opened:
        assert opened.titles() == [film()]  # listed as it is
        opened.migrate()
        opened.migrate()
        assert opened.titles() == [film()]
        assert opened.ingests() == ["killed"]
        assert opened.hashed() == set()
        opened.set_block_hashes(film().folder, b"r" * 32, b"s" * 8)

    with Catalog(second) as again:
        assert again.titles()[0].block_roots == b"r" * 32
        assert again.hashed() == {film().folder}
        assert again.faults() == []


def test_block_hashes_of_a_title_that_is_gone_are_refused(catalog):
    with pytest.raises(StoreUsageError, match="no title in folder 'f'"):
        catalog.set_block_hashes("f", b"r", b"s")


def test_a_catalog_of_format_1_can_be_listed_as_it_is(old):
    with Catalog(old) as opened:
        assert opened.titles() == [film()]
        assert [(row.state, row.capacity_bytes) for row in opened.disks()] == [("active", 0)] * 2


def test_a_catalog_of_format_1_becomes_one_of_this_format(old):
    """What an ingest of the old kind left cannot be resumed: it is debris."""
    with Catalog(old) as opened:
        opened.migrate()
        opened.migrate()
        opened.set_disk(1, state="draining", capacity_bytes=5)
        opened.begin_ingest("new", "{}", 7.0)

    with Catalog(old) as again:
        assert again.titles() == [film()]
        assert again.debris() == ["killed"]
        assert again.ingests() == ["new"]
        assert [row.state for row in again.disks()] == ["active", "draining"]
        assert again.faults() == []


def test_a_migration_that_fails_changes_nothing(old):
    with sqlite3.connect(old) as db:
        db.execute("CREATE TABLE garbage (in_the_way)")
    db.close()

    with Catalog(old) as opened:
        with pytest.raises(StoreError, match="already exists"):
            opened.migrate()
        assert opened.titles() == [film()]
        assert opened._db.execute("SELECT * FROM ingests").fetchall() == [("killed",)]


def test_a_migrated_catalog_has_the_tables_of_a_new_one(old, path):
    def columns(file):
        db = sqlite3.connect(file)
        found = db.execute(
            'SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk '
            "FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type='table' "
            "ORDER BY m.name, c.cid"
        ).fetchall()
        db.close()
        return found

    with Catalog(old) as opened:
        opened.migrate()

    assert columns(old) == columns(path)
