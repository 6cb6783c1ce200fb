"""Real directories and real file systems are asked how they are."""

import contextlib
import json

import pytest

from vodserver.store.upkeep.probe import id_of, look_at


@pytest.fixture
def disk(tmp_path):
    return make_disk(tmp_path / "disk")


def make_disk(path):
    path.mkdir(exist_ok=True)
    (path / "vod-disk.json").write_text(json.dumps({"store": "s", "disk": "d"}))
    return path


def names(path):
    return sorted(each.name for each in path.iterdir())


def test_a_disk_that_is_well(disk):
    found = look_at(disk, "s", "d", write=True)

    assert found.present is True
    assert found.write == "done"
    assert 0 < found.free_bytes <= found.total_bytes
    assert found.device == disk.stat().st_dev
    assert names(disk) == ["vod-disk.json"]


def test_it_is_not_written_to_unasked(disk):
    assert look_at(disk, "s", "d", write=False).write == "untried"


@pytest.mark.parametrize(("store", "number"), [("other", "d"), ("s", "other")])
def test_another_disk_is_not_this_one(disk, store, number):
    found = look_at(disk, store, number, write=True)

    assert found.present is False
    assert "another disk" in found.fault


@pytest.mark.parametrize("content", ["", "[]", "{}", "nonsense", "[" * 100_000, '{"store": 1}'])
def test_an_id_file_that_says_nothing(disk, content):
    (disk / "vod-disk.json").write_text(content)

    assert look_at(disk, "s", "d", write=True).present is False
    assert id_of(disk) is None


def test_a_directory_that_is_gone(tmp_path):
    found = look_at(tmp_path / "gone", "s", "d", write=True)

    assert found.present is False
    assert "not mounted" in found.fault
    assert id_of(tmp_path / "gone") is None


def test_an_id_file_that_cannot_be_read_is_a_fault_and_no_absence(disk):
    (disk / "vod-disk.json").unlink()
    (disk / "vod-disk.json").mkdir()

    found = look_at(disk, "s", "d", write=True)

    assert found.present is None
    assert found.fault == "Is a directory"


def test_a_full_file_system(mount):
    disk = make_disk(mount("small", "64k"))
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))

    found = look_at(disk, "s", "d", write=True)

    assert found.write == "full"
    assert "filler" in names(disk)
    assert ".vod-probe" not in names(disk)


def test_a_read_only_file_system(mount):
    disk = make_disk(mount("small", "64k"))
    mount.read_only(disk)

    found = look_at(disk, "s", "d", write=True)

    assert found.present is True
    assert found.write == "read-only"
    assert found.fault == "Read-only file system"


def test_an_unmounted_file_system(mount):
    disk = make_disk(mount("small", "64k"))
    mount.away(disk)

    assert look_at(disk, "s", "d", write=True).present is False


def test_a_symbolic_link_in_the_place_of_the_probe_is_not_followed(disk, tmp_path):
    (tmp_path / "precious").write_text("keep me")
    (disk / ".vod-probe").symlink_to(tmp_path / "precious")

    assert look_at(disk, "s", "d", write=True).write == "failed"
    assert (tmp_path / "precious").read_text() == "keep me"
