"""The catalog: titles come into being whole or not at all."""

import dataclasses
import sqlite3

import pytest

from vodserver.errors import StoreError, StoreUsageError
from vodserver.store.catalog import Catalog, DiskRow, Extent, Title


@pytest.fixture
def path(tmp_path):
    return tmp_path / "catalog.sqlite"


@pytest.fixture
def catalog(path, tmp_path):
    disks = [DiskRow(0, "d0", tmp_path / "a"), DiskRow(1, "d1", tmp_path / "b")]
    made = Catalog.create(path, "store-id", "rda", disks)
    yield made
    made.close()


def film(title_id="film", **changes):
    values = {
        "id": title_id,
        "name": "A film",
        "folder": f"folder-of-{title_id}",
        "film_bytes": 150,
        "duration": 6.5,
        "piece_bytes": 16384,
        "extent_bytes": 100,
        "info_hash": f"hash of {title_id}",
        "sha256": "00",
        "info": b"d4:name1:xe",
        "timemap": b"de",
        "media": {"container": "mp4", "audio_codec": None},
        "added": 5.25,
        "extents": (Extent(0, 100, (0, 1), b"12345678"), Extent(1, 50, (1, 0), b"87654321")),
    }
    return Title(**values | changes)


def test_a_new_catalog_tells_what_it_was_made_with(catalog, tmp_path):
    assert catalog.store_id == "store-id"
    assert catalog.allocation == "rda"
    assert [row.path for row in catalog.disks()] == [tmp_path / "a", tmp_path / "b"]
    assert catalog.titles() == []
    assert catalog.ingests() == []


def test_a_title_comes_back_as_it_was_committed(catalog, path):
    catalog.begin_ingest("folder-of-film")
    catalog.commit_title(film())
    catalog.close()

    again = Catalog(path)
    assert again.titles() == [film()]
    assert again.ingests() == []
    again.close()


def test_titles_are_listed_in_the_order_in_which_they_were_added(catalog):
    for title_id, added in (("c", 1.0), ("a", 3.0), ("b", 2.0)):
        catalog.commit_title(film(title_id, added=added))

    assert [title.id for title in catalog.titles()] == ["c", "b", "a"]


def test_the_same_film_twice_is_refused_and_changes_nothing(catalog):
    catalog.commit_title(film())
    catalog.begin_ingest("second")

    with pytest.raises(StoreUsageError, match="has this film already, as 'film'"):
        catalog.commit_title(film("other", folder="second", info_hash="hash of film"))

    assert catalog.titles() == [film()]
    assert catalog.ingests() == ["second"]


def test_a_commit_that_fails_half_way_leaves_nothing(catalog):
    """The second extent has the number of the first: the row before it goes as well."""
    catalog.begin_ingest("folder-of-film")
    twice = dataclasses.replace(film(), extents=film().extents[:1] * 2)

    with pytest.raises(StoreError, match="cannot be used"):
        catalog.commit_title(twice)

    assert catalog.titles() == []
    assert catalog.ingests() == ["folder-of-film"]
    catalog.commit_title(film())
    assert catalog.titles() == [film()]


def test_ingests_are_noted_and_struck(catalog):
    catalog.begin_ingest("x")
    catalog.begin_ingest("y")
    catalog.forget_ingest("x")

    assert catalog.ingests() == ["y"]


def test_a_reader_beside_the_owner_sees_only_whole_titles(catalog, path):
    catalog._db.execute("BEGIN IMMEDIATE")
    catalog._db.execute("INSERT INTO ingests VALUES ('unfinished')")
    reader = Catalog(path)

    assert reader.ingests() == []
    assert reader.titles() == []

    reader.close()
    catalog._db.execute("ROLLBACK")


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_catalog_is_one_clear_line(path, content):
    path.write_bytes(content)

    with pytest.raises(StoreError, match=r"the catalog .*catalog\.sqlite cannot be used"):
        Catalog(path)


def test_a_catalog_of_another_format_is_refused(catalog, path):
    catalog.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE store SET value='99' WHERE key='format'")
    db.close()

    with pytest.raises(StoreUsageError, match=r"format 99.*reads format 1"):
        Catalog(path)


def test_a_damaged_row_is_one_clear_line(catalog, path):
    catalog.commit_title(film())
    catalog.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE titles SET media='{'")
    db.close()
    opened = Catalog(path)

    with pytest.raises(StoreError, match="cannot be used"):
        opened.titles()

    opened.close()


def test_an_unwritable_place_is_one_clear_line(tmp_path):
    with pytest.raises(StoreError, match="cannot write the catalog"):
        Catalog.create(tmp_path / "none" / "catalog.sqlite", "id", "rda", [])
