"""The catalog: titles come into being whole or not at all."""

import dataclasses
import sqlite3
import threading

import pytest

from tests.vodserver.store.records import film
from vodserver.errors import StoreError, StoreUsageError
from vodserver.store.catalog import (
    BadReplica,
    Catalog,
    DiskRow,
    Extent,
    Ingest,
    Replica,
)


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
    catalog._db.execute("INSERT INTO ingests VALUES ('unfinished', '', 0.0)")
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


def test_a_disk_is_added_and_changed(catalog, tmp_path):
    catalog.add_disk(DiskRow(2, "d2", tmp_path / "c", capacity_bytes=7))
    catalog.set_disk(2, state="draining", path=tmp_path / "d", id="d2b", capacity_bytes=9)

    assert catalog.disks()[2] == DiskRow(2, "d2b", tmp_path / "d", "draining", 9)


def test_a_number_is_never_used_twice(catalog, tmp_path):
    catalog.set_disk(1, state="retired")

    with pytest.raises(StoreError, match="has the number 2, not 1"):
        catalog.add_disk(DiskRow(1, "another", tmp_path / "c"))
    with pytest.raises(StoreError, match="UNIQUE"):
        catalog.add_disk(DiskRow(2, "d1", tmp_path / "c"))
    assert [row.id for row in catalog.disks()] == ["d0", "d1"]


def test_a_disk_that_holds_replicas_is_not_retired(catalog):
    catalog.commit_title(film())

    with pytest.raises(StoreUsageError, match="disk 1 still holds 2 replicas"):
        catalog.set_disk(1, state="retired")

    assert [row.state for row in catalog.disks()] == ["active", "active"]


def test_a_title_is_not_committed_onto_a_disk_that_was_retired_meanwhile(catalog):
    """As when a disk is drained while a film is on its way onto it."""
    catalog.begin_ingest("folder-of-film")
    catalog.set_disk(1, state="retired")

    with pytest.raises(StoreError, match="disk 1 was taken out of the store meanwhile"):
        catalog.commit_title(film())

    assert catalog.titles() == []
    assert catalog.ingests() == ["folder-of-film"]


@pytest.mark.parametrize("change", [{"state": "lost"}, {"path": None}, {}])
def test_a_disk_that_is_not_there_cannot_be_changed(catalog, change):
    with pytest.raises(StoreUsageError, match="has no disk 7"):
        catalog.set_disk(7, **change)


def test_a_state_that_does_not_exist_is_refused(catalog):
    with pytest.raises(StoreError, match="CHECK"):
        catalog.set_disk(0, state="sleepy")


def test_what_each_disk_holds_is_added_up(catalog):
    catalog.commit_title(film(extents=(Extent(0, 100, (0, 1), b""), Extent(1, 50, (1,), b""))))
    catalog.begin_ingest("x", "{}", 0.0)
    catalog.note_ingested("x", Extent(0, 7, (0,), b""))

    assert catalog.used_bytes() == {0: 107, 1: 150}


def test_a_move_leaves_garbage_and_coming_back_takes_it_away(catalog, tmp_path):
    catalog.add_disk(DiskRow(2, "d2", tmp_path / "c"))
    catalog.commit_title(film())
    catalog.note_bad("folder-of-film", 0, 1, "rotten", 1.0)

    catalog.set_extent_disks("film", 0, (0, 2))

    assert catalog.title("film").extents[0].disks == (0, 2)
    assert catalog.garbage() == [Replica("folder-of-film", 0, 1)]
    assert catalog.bad() == []

    catalog.set_extent_disks("film", 0, (1, 2))

    assert catalog.garbage() == [Replica("folder-of-film", 0, 0)]
    catalog.forget_garbage("folder-of-film", 0, 0)
    assert catalog.garbage() == []
    catalog.note_garbage("folder-of-film", 1, 2)
    assert catalog.garbage() == [Replica("folder-of-film", 1, 2)]


def test_many_extents_move_at_once_or_none(catalog, tmp_path):
    catalog.add_disk(DiskRow(2, "d2", tmp_path / "c"))
    catalog.commit_title(film())

    with pytest.raises(StoreUsageError, match="no extent 9"):
        catalog.set_extents_disks("film", {0: (2, 0), 9: (0, 1)})
    assert catalog.title("film") == film()

    catalog.set_extents_disks("film", {0: (2, 0), 1: (2, 1)})
    assert [extent.disks for extent in catalog.title("film").extents] == [(2, 0), (2, 1)]


@pytest.mark.parametrize("disks", [(), (1, 1), (0, 7)])
def test_an_extent_is_not_placed_nowhere_twice_or_on_no_disk(catalog, disks):
    catalog.commit_title(film())

    with pytest.raises(StoreError):
        catalog.set_extent_disks("film", 0, disks)

    assert catalog.title("film") == film()


def test_a_replica_is_pending_until_it_is_committed(catalog, tmp_path):
    catalog.add_disk(DiskRow(2, "d2", tmp_path / "c"))
    catalog.commit_title(film())
    catalog.note_bad("folder-of-film", 1, 2, "rotten", 1.0)

    catalog.begin_write("folder-of-film", 1, 2)
    catalog.begin_write("folder-of-film", 0, 2)
    catalog.begin_write("folder-of-film", 0, 2)
    assert sorted(catalog.pending()) == [("folder-of-film", 0, 2), ("folder-of-film", 1, 2)]

    catalog.commit_replica("film", 1, (1, 2), folder="folder-of-film", disk=2)
    catalog.finish_write("folder-of-film", 0, 2)

    assert catalog.pending() == []
    assert catalog.bad() == []
    assert catalog.title("film").extents[1].disks == (1, 2)
    assert catalog.places(Replica("folder-of-film", 1, 2))
    assert not catalog.places(Replica("folder-of-film", 0, 2))
    assert not catalog.places(Replica("another", 1, 2))


def test_a_replica_of_a_title_that_was_removed_meanwhile_is_not_committed(catalog):
    catalog.commit_title(film())
    catalog.begin_write("folder-of-film", 0, 1)
    catalog.remove_title("film")

    with pytest.raises(StoreUsageError, match="no extent 0 of a title 'film'"):
        catalog.commit_replica("film", 0, (0, 1), folder="folder-of-film", disk=1)

    assert catalog.pending() == [Replica("folder-of-film", 0, 1)]


def test_bad_replicas_stay_known_with_their_first_fault(catalog, path):
    catalog.note_bad("f", 3, 1, "its checksum does not match", 12.5)
    catalog.note_bad("f", 3, 1, "again", 13.0)
    catalog.note_bad("f", 4, 0, "missing", 11.0)
    catalog.close()

    with Catalog(path) as again:
        assert again.bad() == [
            BadReplica(Replica("f", 4, 0), "missing", 11.0),
            BadReplica(Replica("f", 3, 1), "its checksum does not match", 12.5),
        ]
        again.forget_bad("f", 4, 0)
        assert [bad.replica for bad in again.bad()] == [("f", 3, 1)]


def test_a_removed_title_is_gone_and_its_folder_is_debris(catalog):
    catalog.commit_title(film())
    catalog.commit_title(film("other"))
    catalog.note_bad("folder-of-film", 0, 0, "missing", 1.0)

    assert catalog.remove_title("film") == film()

    assert catalog.titles() == [film("other")]
    assert catalog.title("film") is None
    assert catalog.title_ids() == {"other"}
    assert catalog.debris() == ["folder-of-film"]
    assert catalog.bad() == []
    assert catalog.faults() == []
    catalog.forget_debris("folder-of-film")
    assert catalog.debris() == []


def test_a_title_that_is_not_there_cannot_be_removed(catalog):
    with pytest.raises(StoreUsageError, match=r"no title 'x'.*vodserver list"):
        catalog.remove_title("x")


def test_the_progress_of_an_ingest_is_kept_until_it_ends(catalog, path):
    done = [Extent(n, 10 + n, (n, 1 - n), b"sums") for n in (0, 1)]
    catalog.begin_ingest("folder-of-film", '{"film": "x"}', 3.5)
    for step in done:
        catalog.note_ingested("folder-of-film", step)
    catalog.close()

    with Catalog(path) as again:
        assert again.unfinished() == [Ingest("folder-of-film", '{"film": "x"}', 3.5)]
        assert again.ingested("folder-of-film") == done
        moved = dataclasses.replace(done[1], disks=(1, 0))
        again.note_ingested("folder-of-film", moved)
        assert again.ingested("folder-of-film") == [done[0], moved]
        again.commit_title(film())
        assert (again.unfinished(), again.ingested("folder-of-film")) == ([], [])


def test_an_ingest_that_is_given_up_is_debris(catalog):
    catalog.begin_ingest("x", "{}", 1.0)
    catalog.note_ingested("x", Extent(0, 1, (0,), b""))

    catalog.abandon_ingest("x")

    assert (catalog.unfinished(), catalog.ingested("x"), catalog.debris()) == ([], [], ["x"])


def test_notes_are_kept_changed_and_struck(catalog):
    assert catalog.get_note("scrub") is None
    catalog.set_note("scrub", "1")
    catalog.set_note("scrub", "2")
    catalog.set_note("format", "not the format")
    assert (catalog.get_note("scrub"), catalog.get_note("format")) == ("2", "not the format")
    catalog.set_note("scrub", None)
    assert catalog.get_note("scrub") is None
    Catalog(catalog.path).close()


def test_two_threads_write_through_connections_of_their_own(catalog, path):
    """Neither loses a write nor meets a lock, however they fall together."""

    def write(prefix):
        with Catalog(path) as own:
            for number in range(40):
                own.note_bad(prefix, number, 0, "x", 1.0)

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(catalog.bad()) == 80


def test_a_title_is_read_as_one_state_while_another_connection_moves_it(catalog, path):
    """The row of a title and its extents come from the same moment."""
    catalog.commit_title(film())
    with Catalog(path) as other, catalog._snapshot():
        assert catalog.title("film") == film()
        other.remove_title("film")
        assert catalog.title("film") == film()
    assert catalog.titles() == []


def test_rows_that_refer_to_nothing_are_faults(catalog):
    catalog.commit_title(film())
    catalog._db.execute("PRAGMA foreign_keys=OFF")
    catalog._db.execute("DELETE FROM titles")

    assert catalog.faults() == ["table extents: a row refers to none in titles"] * 2
