"""What goes, goes for good, whenever it is stopped; and nothing else ever goes."""

import pytest

from tests.vodserver.conftest import DISKS
from vodserver.errors import StoreError, StoreUsageError
from vodserver.store import list_titles
from vodserver.store.layout import draft_path, extent_path, remove_folder
from vodserver.store.removal import (
    INGEST_AGE_SECONDS,
    clear_debris,
    clear_folder,
    clear_garbage,
    clear_pending,
    remove_title,
)


def everything(home):
    return sorted(str(path) for disk in home.disks for path in disk.glob("extents/*/*"))


def put(home, disk, folder, number, *, draft=False):
    path = (draft_path if draft else extent_path)(home.disks[disk], folder, number)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_a_removed_title_and_its_files_are_gone(home):
    with home.open() as store:
        assert remove_title(store.catalog, store.disk_paths, "clock") == home.title
        assert store.catalog.debris() == []
    assert list_titles(home.path) == []
    assert everything(home) == []


def test_a_removal_that_was_killed_before_its_files_went_is_ended_by_the_next_opening(home):
    with home.open() as store:
        store.catalog.remove_title("clock")
    assert everything(home)

    with home.open() as store:
        assert store.catalog.debris() == []
    assert everything(home) == []


def test_what_lies_on_a_disk_that_is_away_goes_when_it_is_back(home):
    """Also when the program was restarted in between."""
    id_file = home.disks[1] / "vod-disk.json"
    id_file.rename(id_file.with_suffix(".away"))
    with home.open() as store:
        remove_title(store.catalog, store.disk_paths, "clock")
        assert store.catalog.debris() == [home.title.folder]
    assert everything(home)
    id_file.with_suffix(".away").rename(id_file)

    with home.open() as store:
        assert store.catalog.debris() == []
    assert everything(home) == []


@pytest.mark.parametrize("state", ["lost", "retired"])
def test_a_disk_that_never_comes_back_is_not_waited_for(home, state):
    (home.disks[1] / "vod-disk.json").unlink()
    with home.open() as store:
        store.catalog.note_garbage("f" * 16, 0, 1)
        title = store.catalog.remove_title("clock")
        store.catalog.set_disk(1, state=state)
        clear_debris(store.catalog, store.disk_paths)

        assert store.catalog.debris() == []
        assert store.catalog.garbage() == []
    assert not (home.disks[0] / "extents" / title.folder).exists()


def test_a_title_that_is_not_there_cannot_be_removed(home):
    before = everything(home)
    with home.open() as store, pytest.raises(StoreUsageError, match="no title 'x'"):
        remove_title(store.catalog, store.disk_paths, "x")
    assert everything(home) == before


@pytest.mark.parametrize("draft", [True, False])
def test_a_replica_that_was_being_written_goes_and_its_folder_if_that_is_empty(home, draft):
    path = put(home, 2, "0123456789abcdef", 7, draft=draft)
    with home.open() as store:
        store.catalog.begin_write("0123456789abcdef", 7, 2)
    home.open().close()

    with home.open() as store:
        assert store.catalog.pending() == []
    assert not path.parent.exists()


def test_a_placed_replica_that_was_being_remade_stays_and_its_draft_goes(home):
    extent = home.title.extents[3]
    draft = put(home, extent.disks[0], home.title.folder, 3, draft=True)
    with home.open() as store:
        store.catalog.begin_write(home.title.folder, 3, extent.disks[0])
        clear_debris(store.catalog, store.disk_paths)

        assert store.catalog.pending() == []
    assert not draft.exists()
    assert home.replica(3, 0).exists()


def test_garbage_goes_unless_a_title_has_it_again(home):
    extent = home.title.extents[3]
    other = next(n for n in range(DISKS) if n not in extent.disks)
    moved = put(home, other, home.title.folder, 3)
    with home.open() as store:
        store.catalog.note_garbage(home.title.folder, 3, other)
        store.catalog.note_garbage(home.title.folder, 3, extent.disks[1])
        clear_garbage(store.catalog, store.disk_paths)

        assert store.catalog.garbage() == []
    assert not moved.exists()
    assert home.replica(3, 1).exists()


def test_garbage_of_one_title_goes_without_that_of_others(home):
    with home.open() as store:
        store.catalog.note_garbage("a" * 16, 0, 0)
        store.catalog.note_garbage("b" * 16, 0, 0)
        clear_garbage(store.catalog, store.disk_paths, folder="a" * 16)

        assert [replica.folder for replica in store.catalog.garbage()] == ["b" * 16]


def test_what_cannot_be_removed_stays_noted(home, monkeypatch):
    put(home, 0, "0123456789abcdef", 7)

    def fail(*_, **__):
        raise PermissionError

    with home.open() as store:
        store.catalog.begin_write("0123456789abcdef", 7, 0)
        monkeypatch.setattr("pathlib.Path.unlink", fail)
        clear_pending(store.catalog, store.disk_paths, store.catalog.pending()[0])
        assert len(store.catalog.pending()) == 1


def test_a_folder_stays_noted_while_someone_may_still_write_into_it(home):
    """As a repair does that was under way when its title was removed."""
    with home.open() as store:
        store.catalog.begin_write(home.title.folder, 0, 0)
        store.catalog.remove_title("clock")
        clear_folder(store.catalog, store.disk_paths, home.title.folder)
        put(home, 0, home.title.folder, 0)
        assert store.catalog.debris() == [home.title.folder]

    with home.open() as store:
        assert store.catalog.debris() == store.catalog.pending() == []
    assert everything(home) == []


@pytest.mark.parametrize(
    ("plan", "age", "stays"),
    [("{}", 0.0, True), ("{}", INGEST_AGE_SECONDS + 1, False), ("", 0.0, False)],
)
def test_an_ingest_stays_if_it_can_be_gone_on_with_and_is_not_old(home, plan, age, stays):
    path = put(home, 0, "0123456789abcdef", 0)
    with home.open() as store:
        store.catalog.begin_ingest("0123456789abcdef", plan, 1000.0)
        clear_debris(store.catalog, store.disk_paths, now=1000.0 + age)

        assert (store.catalog.ingests() != []) == stays
        assert store.catalog.debris() == []
    assert path.exists() == stays


@pytest.mark.parametrize("folder", ["", ".", "..", "a/b", "/"])
def test_nothing_outside_is_removed_whatever_the_catalog_says(home, folder):
    with pytest.raises(StoreError, match="the catalog is damaged"):
        remove_folder(folder, home.disks)
    assert all((disk / "vod-disk.json").exists() for disk in home.disks)
