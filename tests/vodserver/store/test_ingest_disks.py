"""Films on their way in while disks are away, full, failing or lying."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.vodserver.store.adding import content, inodes, leftovers, stopped
from vodserver.errors import AllocationError, DiskError
from vodserver.store import add_film, open_store
from vodserver.store.catalog import Catalog
from vodserver.store.layout import extent_path
from vodserver.store.plan import IngestPlan


def test_a_disk_that_is_away_gets_nothing_and_is_named(empty, clock_film):
    (empty.parent / "disk2" / "vod-disk.json").unlink()
    notices = []

    with open_store(empty) as store:
        title = add_film(store, clock_film, notice=notices.append)

    assert {disk for extent in title.extents for disk in extent.disks} == {0, 1, 3}
    assert len(notices) == 1
    assert "disk2 is not there: the film goes onto other disks" in notices[0]


def test_too_few_disks_are_one_clear_line_and_touch_nothing(empty, clock_film):
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 3)
    for number in (0, 1, 2):
        (empty.parent / f"disk{number}" / "vod-disk.json").unlink()
    before = inodes(empty)

    with open_store(empty) as store:
        with pytest.raises(DiskError, match="disk0 is not there: mount it"):
            add_film(store, clock_film)
        assert store.catalog.ingests() == [folder]
    assert inodes(empty) == before


def test_too_few_active_disks_touch_nothing_either(empty, clock_film):
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 3)
        for number in (0, 1, 2):
            store.catalog.set_disk(number, state="draining")
        before = inodes(empty)

        with pytest.raises(AllocationError, match=r"1 disks.*needs 2: add one with"):
            add_film(store, clock_film)

        assert store.catalog.ingests() == [folder]
        assert inodes(empty) == before


def test_a_kill_while_a_disk_stood_in_leaves_nothing_behind_in_the_end(empty, clock_film):
    """Also if the disk that stood in is away when the film gets in."""
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 2)
        with Catalog(empty / "catalog.sqlite") as catalog:
            plan = IngestPlan.from_json(catalog.unfinished()[0].plan)
        other = next(n for n in range(4) if n not in plan.placement[2])
        stand_in = extent_path(store.disk_paths[other], folder, 2)
        stand_in.parent.mkdir(exist_ok=True)
        stand_in.write_bytes(b"half")
    id_file = stand_in.parents[2] / "vod-disk.json"
    id_file.rename(id_file.with_suffix(".away"))
    with open_store(empty) as store:
        title = add_film(store, clock_film)
    assert stand_in.exists()
    id_file.with_suffix(".away").rename(id_file)

    with open_store(empty) as store:
        assert store.catalog.garbage() == []
        assert not stand_in.exists()
        assert content(store, title) == {clock_film.read_bytes()}


@pytest.mark.parametrize("state", ["draining", "lost"])
def test_only_active_disks_get_extents(empty, clock_film, state):
    with open_store(empty) as store:
        store.catalog.set_disk(1, state=state)
        title = add_film(store, clock_film)

    assert {disk for extent in title.extents for disk in extent.disks} == {0, 2, 3}


def test_a_disk_that_stops_taking_extents_meanwhile_gets_no_more(empty, clock_film):
    """As when it is drained while the film is on its way: what is on it stays for the drain."""

    def drain(done, _):
        if done < 500_000:
            with Catalog(empty / "catalog.sqlite") as other:
                other.set_disk(3, state="draining")

    with open_store(empty) as store:
        title = add_film(store, clock_film, progress=drain, rng=np.random.default_rng(1))
        assert content(store, title) == {clock_film.read_bytes()}
        assert store.catalog.garbage() == []

    assert 3 not in {disk for extent in title.extents[2:] for disk in extent.disks}
    assert all(len(set(extent.disks)) == 2 for extent in title.extents)
    assert len(inodes(empty)) == 2 * len(title.extents)


def test_an_add_goes_on_without_a_disk_that_went_away(empty, clock_film):
    """And when the disk is back, what lies on it of the film goes with the next opening."""
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 4, rng=np.random.default_rng(1))
        on_it = [e.number for e in store.catalog.ingested(folder) if 3 in e.disks]
    id_file = empty.parent / "disk3" / "vod-disk.json"
    id_file.rename(id_file.with_suffix(".away"))
    with open_store(empty) as store:
        title = add_film(store, clock_film)
        assert content(store, title) == {clock_film.read_bytes()}
        assert {number for _, number, _ in store.catalog.garbage()} >= set(on_it)
    assert on_it
    id_file.with_suffix(".away").rename(id_file)

    with open_store(empty) as store:
        assert store.catalog.garbage() == []
    assert len(inodes(empty)) == 2 * len(title.extents)


def refuse_writes_of(disk, monkeypatch, number):
    """From now on the disk fails every write, as one that is full or broken does."""
    original = os.open

    def failing(path, flags, *rest, **named):
        if flags & os.O_CREAT and str(path).startswith(f"{disk}/"):
            raise OSError(number, os.strerror(number))
        return original(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", failing)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_is_passed_over_and_named(empty, clock_film, monkeypatch, number):
    notices = []

    def fail_from_the_second_on(done, _):
        if done < 500_000:
            refuse_writes_of(empty.parent / "disk1", monkeypatch, number)

    with open_store(empty) as store:
        title = add_film(
            store,
            clock_film,
            progress=fail_from_the_second_on,
            notice=notices.append,
            rng=np.random.default_rng(5),
        )
        assert content(store, title) == {clock_film.read_bytes()}
        assert store.catalog.garbage() == []

    assert 1 not in {disk for extent in title.extents[2:] for disk in extent.disks}
    assert all(len(set(extent.disks)) == 2 for extent in title.extents)
    assert len(inodes(empty)) == 2 * len(title.extents)
    assert len(notices) == 1
    assert "disk1" in notices[0]
    assert notices[0].endswith("the film goes onto other disks")


def test_a_disk_that_lies_is_found_out(empty, small_film, monkeypatch):
    """What was written is read back: here the write loses a byte on the way to the disk."""
    original = os.write

    def lossy(fd, data):
        if len(data) > 100_000:
            original(fd, bytes([data[0] ^ 1]) + bytes(data[1:]))
            return len(data)
        return original(fd, data)

    monkeypatch.setattr(os, "write", lossy)
    with open_store(empty) as store, pytest.raises(DiskError, match="does not return what was"):
        add_film(store, small_film)
    assert leftovers(empty) == []


def in_private_mounts(*command: str) -> subprocess.CompletedProcess:
    """Run a command where it may mount small file systems; skips where that is not allowed."""
    probe_run = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe_run.returncode:
        pytest.skip(f"no private mounts here: {probe_run.stderr.strip()}")
    return subprocess.run(
        ["unshare", "-rm", *command], capture_output=True, text=True, timeout=60, check=False
    )


_FILL = r"""
set -u
for n in 0 1 2 3; do
  mkdir -p "$2/disk$n"
  mount -t tmpfs -o size=600k tmpfs "$2/disk$n"
done
V="$1 -m vodserver.cli"
$V init --store "$2/store" --disk "$2/disk0" --disk "$2/disk1" --disk "$2/disk2" --disk "$2/disk3"
$V add --store "$2/store" "$3"; echo "add: $?"
find "$2" -path '*extents/*' | wc -l
$V list --store "$2/store"
for n in 0 1 2 3; do mount -o remount,ro "$2/disk$n"; done
$V add --store "$2/store" "$3"; echo "add: $?"
find "$2" -path '*extents/*' | wc -l
"""


@pytest.mark.slow
def test_a_full_and_a_read_only_disk_are_one_clear_line_and_leave_nothing(tmp_path, small_film):
    """Real file systems, each with room for less than one extent."""
    done = in_private_mounts(
        "sh", "-c", _FILL, "sh", sys.executable, str(tmp_path), str(small_film)
    )

    complaints = done.stderr.strip().splitlines()
    assert len(complaints) == 2, done.stderr
    assert "is full: free some space, or add a disk" in complaints[0]
    assert "cannot be written to: Read-only file system" in complaints[1]
    assert done.stdout.split("\n")[1:6] == [
        "add: 1",
        "0",
        "the store is empty: 'vodserver add FILM' takes a film in",
        "add: 1",
        "0",
    ]
