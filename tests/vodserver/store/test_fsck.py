"""What fsck finds by names and sizes, one fault after the other."""

import shutil
from pathlib import Path

import pytest

from tests.vodserver.conftest import DISKS, unlock
from vodserver.store.catalog import Catalog
from vodserver.store.fsck import KINDS, survey
from vodserver.store.layout import find_disks

FOLDER = "0123456789abcdef"


@pytest.fixture
def check(home):
    """Compare the store as it is now: its findings by kind."""

    def run():
        with Catalog(home.path / "catalog.sqlite") as catalog:
            paths = find_disks(catalog.disks(), catalog.store_id)
            return survey(catalog, paths, 2)

    return run


@pytest.fixture
def catalog(home):
    with Catalog(home.path / "catalog.sqlite") as opened:
        yield opened


def kinds(found):
    return [finding.kind for finding in found.findings]


def test_a_sound_store_is_clean_and_counted(home, check):
    found = check()

    assert found.findings == found.problems() == []
    assert (found.titles, found.extents) == (1, len(home.title.extents))
    assert found.replicas == 2 * found.extents
    assert found.replica_bytes == 2 * home.title.film_bytes


def test_a_missing_replica_is_named(home, check):
    home.replica(4, 1).unlink()

    (finding,) = check().findings

    disk = home.title.extents[4].disks[1]
    assert (finding.kind, finding.title, finding.extent, finding.disk) == (
        *("missing", "clock", 4, disk),
    )
    assert finding.is_problem


@pytest.mark.parametrize("size", [0, 1000, 10_000_000])
def test_a_replica_of_another_size_is_named(home, check, size):
    path = home.replica(4, 1)
    unlock(path)
    with path.open("r+b") as file:
        file.truncate(size)

    (finding,) = check().findings

    assert finding.kind == "size"
    assert f"has {size} bytes and not {home.title.extents[4].size}" in finding.message


def test_a_folder_that_took_the_place_of_a_replica_is_no_replica(home, check):
    path = home.replica(4, 1)
    path.unlink()
    path.mkdir()

    assert kinds(check()) == ["size"]


def test_a_replica_that_was_found_bad_stays_a_problem(home, check, catalog):
    extent = home.title.extents[0]
    catalog.note_bad(home.title.folder, 0, extent.disks[0], "its checksum does not match", 5.0)

    (finding,) = check().findings

    assert finding.kind == "bad"
    assert finding.message.endswith("is bad: its checksum does not match")


def test_a_whole_folder_that_is_gone_is_a_fault_for_each_replica(home, check):
    shutil.rmtree(home.disks[0] / "extents" / home.title.folder)

    on_it = sum(0 in extent.disks for extent in home.title.extents)
    assert kinds(check()) == ["missing"] * on_it


@pytest.mark.parametrize("name", ["000099", ".000001.new"])
def test_a_file_of_ours_that_is_placed_nowhere_is_an_orphan(home, check, name):
    (home.disks[0] / "extents" / home.title.folder / name).write_bytes(b"x")

    (finding,) = check().findings

    assert (finding.kind, finding.path.name, finding.disk) == ("orphan", name, 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("f" * 16, "orphan"), (f".{'f' * 16}.new", "orphan"), ("notes.txt", "unknown")],
)
def test_what_lies_among_block_hashes_and_is_of_no_title(home, check, name, kind):
    (home.path / "blocks" / name).write_bytes(b"x")

    (finding,) = check().findings

    assert (finding.kind, finding.path.name, finding.disk) == (kind, name, None)


def test_block_hashes_on_their_way_in_are_no_orphans(home, check, catalog):
    """Of a film that is being added, and of a title whose hashes are being made."""
    catalog.begin_ingest("a" * 16, "{}", 1.0)
    catalog.set_note("blocks", home.title.folder)
    for folder in ("a" * 16, home.title.folder):
        (home.path / "blocks" / f".{folder}.new").write_bytes(b"x")

    assert kinds(check()) == ["unfinished"]


def test_block_hashes_that_are_gone_or_short(home, check):
    path = home.path / "blocks" / home.title.folder
    unlock(path)
    path.write_bytes(b"x" * 32)
    (short,) = check().findings
    path.unlink()
    (gone,) = check().findings

    assert (short.kind, gone.kind) == ("blocks", "blocks")
    assert "have 32 bytes" in short.message
    assert gone.title == "clock"


def test_a_replica_on_a_disk_where_it_is_not_placed_is_an_orphan(home, check):
    extent = home.title.extents[0]
    other = next(n for n in range(DISKS) if n not in extent.disks)
    folder = home.disks[other] / "extents" / home.title.folder
    folder.mkdir(exist_ok=True)
    shutil.copy(home.replica(0, 0), folder / "000000")

    assert kinds(check()) == ["orphan"]


def test_a_folder_of_no_title_is_an_orphan(home, check):
    (home.disks[3] / "extents" / FOLDER).mkdir()

    (finding,) = check().findings

    assert (finding.kind, finding.disk, finding.path.name) == ("orphan", 3, FOLDER)


@pytest.mark.parametrize(
    "where", ["extents/holiday", "extents/{folder}/notes.txt", "extents/x.mp4"]
)
def test_a_stranger_s_file_is_unknown(home, check, where):
    path = home.disks[0] / where.format(folder=home.title.folder)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"mine")

    (finding,) = check().findings

    assert (finding.kind, finding.path) == ("unknown", path)
    assert finding.is_problem


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (None, "is not there"),
        ('{"store": "another", "disk": "x"}', "belongs to another store"),
        ('{"store": "STORE", "disk": "x"}', "is another disk of this store"),
    ],
)
def test_a_disk_that_is_not_what_it_was_is_named_once(home, check, catalog, owner, why):
    id_file = home.disks[2] / "vod-disk.json"
    id_file.unlink()
    if owner is not None:
        id_file.write_text(owner.replace("STORE", catalog.store_id))

    (finding,) = check().findings

    assert (finding.kind, finding.disk) == ("disk", 2)
    assert finding.message.endswith(f"disk2 {why}")


def test_a_disk_whose_extents_cannot_be_listed_is_named(home, check):
    shutil.rmtree(home.disks[2] / "extents")

    found = check()

    assert kinds(found)[0] == "disk"
    assert set(kinds(found)[1:]) == {"missing"}


def test_an_extent_on_a_lost_disk_has_too_few_replicas(home, check, catalog):
    catalog.set_disk(2, state="lost")

    found = check()

    assert kinds(found) == ["few"] * sum(2 in extent.disks for extent in home.title.extents)
    assert "has 1 of 2 replicas" in found.findings[0].message


def test_two_replicas_on_one_disk_are_one(home, check, catalog):
    disk = home.title.extents[0].disks[0]
    other = home.title.extents[0].disks[1]
    catalog._db.execute("UPDATE extents SET disks=? WHERE number=0", (f"[{disk}, {disk}]",))

    found = check()

    assert kinds(found) == ["twice", "orphan"]
    assert found.findings[1].disk == other


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM extents WHERE number=2",
        "UPDATE titles SET film_bytes=film_bytes+1",
        "UPDATE extents SET sums=x'00' WHERE number=1",
    ],
)
def test_a_catalog_that_contradicts_itself_is_named(check, catalog, damage):
    catalog._db.execute(damage)

    assert "catalog" in kinds(check())


def test_rows_without_a_title_are_named(home, check, catalog):
    catalog._db.execute("PRAGMA foreign_keys=OFF")
    catalog._db.execute("UPDATE extents SET title='ghost' WHERE number=0")

    assert "catalog" in kinds(check())


def test_an_unfinished_ingest_is_a_note_and_its_files_are_known(home, check, catalog):
    catalog.begin_ingest(FOLDER, "{}", 1.0)
    (home.disks[0] / "extents" / FOLDER).mkdir()
    (home.disks[0] / "extents" / FOLDER / "000000").write_bytes(b"x")

    found = check()

    assert kinds(found) == ["unfinished"]
    assert found.problems() == []


def test_debris_and_garbage_that_are_still_there_are_stale(home, check, catalog):
    catalog.abandon_ingest(FOLDER)
    (home.disks[0] / "extents" / FOLDER).mkdir()
    extent = home.title.extents[0]
    other = next(n for n in range(DISKS) if n not in extent.disks)
    catalog.note_garbage(home.title.folder, 0, other)

    found = check()

    assert kinds(found) == ["stale", "stale"]
    assert len(found.problems()) == 2


def test_a_replica_that_was_being_written_for_a_title_that_is_no_more_is_stale(check, catalog):
    catalog.begin_write(FOLDER, 0, 1)

    assert kinds(check()) == ["stale"]


def test_what_waits_for_a_disk_that_is_away_is_a_note(home, check, catalog):
    (home.disks[1] / "vod-disk.json").unlink()
    catalog.abandon_ingest(FOLDER)
    catalog.note_garbage(home.title.folder, 0, 1)

    found = check()

    assert kinds(found) == ["disk", "waiting", "waiting"]
    assert [finding.kind for finding in found.problems()] == ["disk"]


def test_a_replica_being_written_at_this_moment_is_no_orphan(home, check, catalog):
    """As by the repair of a running server."""
    extent = home.title.extents[0]
    other = next(n for n in range(DISKS) if n not in extent.disks)
    folder = home.disks[other] / "extents" / home.title.folder
    folder.mkdir(exist_ok=True)
    for name in ("000000", ".000000.new"):
        (folder / name).write_bytes(b"x")
    catalog.begin_write(home.title.folder, 0, other)

    assert check().findings == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_documented_as_it_is_explained(kind):
    page = (Path(__file__).parents[3] / "docs" / "store.md").read_text()

    assert f"| `{kind}` | {KINDS[kind]}" in page
