"""How a store comes into being, who may use it, and how it knows its disks."""

import json
import os

import pytest

from vodserver.errors import AllocationError, DiskError, StoreError, StoreUsageError
from vodserver.store import create_store, open_store
from vodserver.store.catalog import Catalog
from vodserver.store.layout import (
    StoreLock,
    capacity_of,
    disk_owner,
    draft_path,
    extent_path,
    find_disks,
    remove_folder,
)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_new_store_is_empty_and_knows_its_disks(tmp_path):
    rows = create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "deep" / "b"])

    with open_store(tmp_path / "s") as store:
        assert store.titles() == []
        assert store.disk_rows == rows
        assert store.disk_paths == {0: tmp_path / "a", 1: tmp_path / "deep" / "b"}


@pytest.mark.parametrize(
    ("disks", "allocation", "message"),
    [
        ([], "rda", "needs 2 disks"),
        (["a"], "rda", "needs 2 disks and there are 1"),
        ([], "naive", "needs 1 disks"),
        (["a", "b", "a"], "rda", "same directory"),
        (["a", "x/../a"], "rda", "same directory"),
        (["a", "b"], "raid7", "no placement policy 'raid7'"),
    ],
)
def test_disks_that_cannot_make_a_store_are_refused(tmp_path, disks, allocation, message):
    with pytest.raises(StoreUsageError, match=message):
        create_store(tmp_path / "s", [tmp_path / d for d in disks], allocation=allocation)

    assert names(tmp_path) == []


def test_one_disk_is_enough_for_a_policy_of_one_copy(tmp_path):
    create_store(tmp_path / "s", [tmp_path / "a"], allocation="naive")

    with open_store(tmp_path / "s") as store:
        assert store.catalog.allocation == "naive"


def test_a_second_store_in_the_same_place_is_refused(tmp_path):
    create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b"])
    before = names(tmp_path)

    with pytest.raises(StoreUsageError, match="there is a store in"):
        create_store(tmp_path / "s", [tmp_path / "c", tmp_path / "d"])

    assert names(tmp_path) == before


def test_a_disk_belongs_to_one_store(tmp_path):
    create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b"])
    before = names(tmp_path)

    with pytest.raises(StoreUsageError, match="/b is a disk of a store already"):
        create_store(tmp_path / "t", [tmp_path / "c", tmp_path / "b"])

    assert names(tmp_path) == before


def test_a_directory_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").write_text("x")
    before = names(tmp_path)

    with pytest.raises(DiskError, match=r"cannot make the directory .*file/b"):
        create_store(tmp_path / "s", [tmp_path / "new" / "a", tmp_path / "file" / "b"])

    assert names(tmp_path) == before


def test_what_was_in_a_directory_stays_when_init_fails(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("x")
    (tmp_path / "file").write_text("x")

    with pytest.raises(DiskError):
        create_store(tmp_path / "file", [tmp_path / "a", tmp_path / "b"])

    assert names(tmp_path) == ["a", "a/mine", "file"]


def test_extents_that_are_no_store_s_are_not_touched(tmp_path):
    (tmp_path / "a" / "extents").mkdir(parents=True)
    (tmp_path / "a" / "extents" / "mine").write_text("x")

    with pytest.raises(DiskError, match="cannot write to the disk"):
        create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b"])

    assert (tmp_path / "a" / "extents" / "mine").read_text() == "x"


def test_one_process_at_a_time_has_the_store(tmp_path):
    lock = StoreLock(tmp_path)

    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        StoreLock(tmp_path)

    lock.close()
    StoreLock(tmp_path).close()


def test_an_opened_store_is_locked_and_a_closed_one_is_not(tmp_path):
    create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b"])

    with open_store(tmp_path / "s"), pytest.raises(StoreError, match="in use by process"):
        open_store(tmp_path / "s")

    open_store(tmp_path / "s").close()


def test_no_store_is_one_clear_line_and_no_litter(tmp_path):
    with pytest.raises(StoreUsageError, match=r"there is no store in .*vodserver init"):
        open_store(tmp_path)

    assert names(tmp_path) == []


@pytest.fixture
def catalog(tmp_path):
    create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    opened = Catalog(tmp_path / "s" / "catalog.sqlite")
    yield opened
    opened.close()


def test_disks_whose_mounts_were_swapped_are_found(tmp_path, catalog):
    (tmp_path / "a").rename(tmp_path / "x")
    (tmp_path / "b").rename(tmp_path / "a")
    (tmp_path / "x").rename(tmp_path / "b")

    found = find_disks(catalog.disks(), catalog.store_id)

    assert found == {0: tmp_path / "b", 1: tmp_path / "a", 2: tmp_path / "c"}


@pytest.mark.parametrize(
    "id_file",
    [None, "", "{", "[]", '"x"', "null", '{"disk": 5}', "\xff", "[" * 5000],
)
def test_a_directory_without_the_disk_s_id_is_not_the_disk(tmp_path, catalog, id_file):
    """Such as the empty mount point of a disk that is not mounted."""
    path = tmp_path / "b" / "vod-disk.json"
    path.unlink()
    if id_file is not None:
        path.write_text(id_file, encoding="latin-1")

    assert set(find_disks(catalog.disks(), catalog.store_id)) == {0, 2}


def test_a_disk_of_another_store_is_not_ours(tmp_path, catalog):
    path = tmp_path / "b" / "vod-disk.json"
    value = json.loads(path.read_text()) | {"store": "another"}
    path.write_text(json.dumps(value))

    assert set(find_disks(catalog.disks(), catalog.store_id)) == {0, 2}


def test_removing_a_folder_tells_whether_it_is_gone(tmp_path):
    for disk in ("a", "b"):
        folder = tmp_path / disk / "extents" / "f"
        folder.mkdir(parents=True)
        (folder / "000000").write_text("x")
    disks = [tmp_path / "a", tmp_path / "b", tmp_path / "none"]

    assert remove_folder("f", disks)
    assert names(tmp_path) == ["a", "a/extents", "b", "b/extents"]


def test_too_few_disks_is_an_allocation_error(tmp_path):
    with pytest.raises(AllocationError):
        create_store(tmp_path / "s", [tmp_path / "a"])


def test_a_new_store_knows_how_large_its_disks_are(tmp_path):
    (first, second) = create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b"])

    facts = os.statvfs(tmp_path)
    assert first.capacity_bytes == second.capacity_bytes == facts.f_frsize * facts.f_blocks
    assert capacity_of(tmp_path / "nowhere") == 0
    with open_store(tmp_path / "s") as store:
        assert store.catalog.disks() == [first, second]


def test_a_draft_lies_beside_the_replica_that_it_will_be(tmp_path):
    draft, path = draft_path(tmp_path, "f", 7), extent_path(tmp_path, "f", 7)

    assert draft.parent == path.parent
    assert (draft.name, path.name) == (".000007.new", "000007")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"store": 1}', "\xff"])
def test_a_directory_whose_id_cannot_be_read_has_no_owner(tmp_path, content):
    (tmp_path / "vod-disk.json").write_bytes(content.encode("latin-1"))

    assert disk_owner(tmp_path) is None
    assert disk_owner(tmp_path / "nowhere") is None
