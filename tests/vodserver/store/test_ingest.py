"""Films on their way in: cut well, written twice, visible only when whole."""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import libtorrent as lt
import numpy as np
import pytest
from bencode2 import bdecode

from experiments.film import FilmSpec, make_film
from tests.vodserver.conftest import flip_byte, make_empty, unlock
from toast.common.timemap import TimeMap
from toast.media import MediaError, probe
from vodserver.errors import AllocationError, DiskError, FilmError, IngestStopped, StoreUsageError
from vodserver.store import add_film, create_store, list_titles, open_store
from vodserver.store.catalog import Catalog
from vodserver.store.layout import extent_path
from vodserver.store.plan import IngestPlan


@pytest.fixture
def empty(tmp_path):
    return make_empty(tmp_path)


def leftovers(store: Path) -> list[str]:
    """Everything on the store's disks but what an empty store has."""
    return sorted(
        str(path.relative_to(store.parent))
        for disk in store.parent.glob("disk*")
        for path in (disk / "extents").iterdir()
    )


def test_a_film_is_there_whole_and_twice(pristine):
    film = pristine.film.read_bytes()
    title = pristine.title
    for copy in (0, 1):
        whole = b"".join(pristine.replica(e.number, copy).read_bytes() for e in title.extents)
        assert whole == film
    assert title.film_bytes == len(film)
    assert title.sha256 == hashlib.sha256(film).hexdigest()
    assert all(len(set(extent.disks)) == 2 for extent in title.extents)
    assert list_titles(pristine.path) == [title]


def test_replicas_are_read_only(pristine):
    assert pristine.replica(0, 0).stat().st_mode & 0o777 == 0o444


def test_the_torrent_s_hashes_are_those_of_the_film(pristine, tmp_path):
    """libtorrent, given the info and the film's own file, finds every piece good."""
    info = bdecode(pristine.title.info)
    film = pristine.film.read_bytes()
    size = info[b"piece length"]
    hashes = [hashlib.sha1(film[at : at + size]).digest() for at in range(0, len(film), size)]

    assert info[b"pieces"] == b"".join(hashes)
    assert info[b"length"] == len(film)
    assert info[b"name"] == pristine.film.name.encode()
    parsed = lt.torrent_info({b"info": info})
    assert str(parsed.info_hashes().v1) == pristine.title.info_hash
    assert parsed.num_files() == 1


def test_the_time_map_is_that_of_the_container(pristine):
    stored = TimeMap.from_bencodable(bdecode(pristine.title.timemap))
    media = probe(pristine.film)

    assert stored.source == "mp4"
    assert stored.index == media.timemap.index
    np.testing.assert_allclose(stored.due, media.timemap.due, atol=0.001)
    assert pristine.title.media == {
        "container": "mp4",
        "video_codec": "h264",
        "audio_codec": "aac",
        "width": 160,
        "height": 90,
    }


def test_progress_ends_with_all_of_it(empty, small_film):
    told = []
    with open_store(empty) as store:
        title = add_film(store, small_film, progress=lambda *step: told.append(step))

    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) == len(title.extents)
    assert told[-1] == (title.film_bytes, title.film_bytes)


def test_the_same_chance_gives_the_same_placement(tmp_path, small_film):
    placements = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        with open_store(make_empty(tmp_path / folder)) as store:
            title = add_film(store, small_film, rng=np.random.default_rng(11))
        placements.append([extent.disks for extent in title.extents])

    assert placements[0] == placements[1]


def test_a_film_of_one_copy_lies_on_the_emptiest_disk(tmp_path, small_film):
    create_store(tmp_path / "s", [tmp_path / "a", tmp_path / "b"], allocation="naive")
    with open_store(tmp_path / "s") as store:
        first = add_film(store, small_film, name="one")
        second = add_film(store, small_film, name="two")

    assert {extent.disks for extent in first.extents} == {(0,)}
    assert {extent.disks for extent in second.extents} == {(1,)}


def test_a_name_names_title_and_torrent(empty, small_film):
    with open_store(empty) as store:
        title = add_film(store, small_film, name="A day  in\tMay")

        assert (title.id, title.name) == ("a-day-in-may", "A day in May")
        assert store.title(title.id) == title
    assert bdecode(title.info)[b"name"] == f"{title.name}.mp4".encode()


def test_the_same_film_twice_is_refused_and_leaves_nothing(empty, small_film):
    with open_store(empty) as store:
        title = add_film(store, small_film)
        before = leftovers(empty)

        with pytest.raises(StoreUsageError, match="has this film already, as 'small'"):
            add_film(store, small_film)

        assert store.catalog.ingests() == []
    assert leftovers(empty) == before
    assert list_titles(empty) == [title]


def test_the_same_film_under_another_name_is_another_title(empty, small_film):
    with open_store(empty) as store:
        titles = [add_film(store, small_film, name=name) for name in ("A!", "a?", "A")]

    assert [title.id for title in titles] == ["a", "a-2", "a-3"]
    assert len({title.info_hash for title in titles}) == 3


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "empty"),
        (b"This is a text about films.\n" * 100, r"film\.mp4"),
        (None, "does not exist"),
    ],
)
def test_what_is_no_film_is_refused_before_anything_is_written(empty, tmp_path, content, error):
    film = tmp_path / "film.mp4"
    if content is not None:
        film.write_bytes(content)

    with open_store(empty) as store:
        with pytest.raises((MediaError, FilmError), match=error) as refused:
            add_film(store, film)
        assert store.catalog.ingests() == []
        assert store.titles() == []
    assert "\n" not in str(refused.value)
    assert leftovers(empty) == []


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_film_is_refused(empty, tmp_path, small_film, share):
    film = tmp_path / "cut.mp4"
    whole = small_film.read_bytes()
    film.write_bytes(whole[: int(len(whole) * share)])

    with open_store(empty) as store, pytest.raises(MediaError):
        add_film(store, film)
    assert leftovers(empty) == []


def test_a_directory_and_a_device_are_no_films(empty, tmp_path):
    with open_store(empty) as store:
        for path in (tmp_path, Path("/dev/zero")):
            with pytest.raises(FilmError, match="is not a file"):
                add_film(store, path)


@pytest.mark.parametrize("change", ["longer", "shorter", "touched"])
def test_a_film_that_changes_meanwhile_is_refused(empty, tmp_path, small_film, change):
    film = tmp_path / "film.mp4"
    film.write_bytes(small_film.read_bytes())

    def alter(done, _):
        if done <= 700_000 and film.stat().st_mtime_ns > 0:
            if change == "longer":
                with film.open("ab") as file:
                    file.write(b"more")
            elif change == "shorter":
                os.truncate(film, 100)
            else:
                os.utime(film, ns=(0, 0))

    with open_store(empty) as store, pytest.raises(FilmError, match="add it again"):
        add_film(store, film, progress=alter)
    assert leftovers(empty) == []
    assert list_titles(empty) == []


def stopper(extents):
    """Says stop when so many extents are done."""
    left = [extents + 1]

    def stop():
        left[0] -= 1
        return left[0] == 0

    return stop


def stopped(store, film, extents, **options):
    """An add that is stopped after so many extents; the folder that it wrote into."""
    with pytest.raises(IngestStopped):
        add_film(store, film, stop=stopper(extents), **options)
    (folder,) = store.catalog.ingests()
    return folder


def inodes(store: Path) -> dict[str, int]:
    return {
        str(path.relative_to(store.parent)): path.stat().st_ino
        for path in store.parent.glob("disk*/extents/*/*")
    }


def content(store, title):
    """The film as each copy of it is on the disks: there must be as many as placed."""
    return {
        b"".join(
            extent_path(store.disk_paths[e.disks[copy]], title.folder, e.number).read_bytes()
            for e in title.extents
        )
        for copy in range(len(title.extents[0].disks))
    }


def test_an_add_that_was_stopped_goes_on_where_it_was(empty, clock_film, pristine):
    """Nothing of it is visible; what was durable is not written again; the result is the same."""
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 4)
        assert store.titles() == list_titles(empty) == []
    before = inodes(empty)
    assert len(before) == 8

    with open_store(empty) as store:
        notices = []
        title = add_film(store, clock_film, notice=notices.append)

        assert title.folder == folder
        assert store.catalog.ingests() == []
        assert content(store, title) == {clock_film.read_bytes()}
    assert before.items() <= inodes(empty).items()
    assert len(inodes(empty)) == 2 * len(title.extents)
    assert len(notices) == 1
    assert "going on where an earlier add was stopped, after " in notices[0]
    assert (title.info, title.sha256) == (pristine.title.info, pristine.title.sha256)
    assert [e.sums for e in title.extents] == [e.sums for e in pristine.title.extents]


def test_an_add_goes_on_under_another_path_and_name(empty, clock_film, tmp_path):
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 3)
        moved = tmp_path / "moved.mp4"
        shutil.copy2(clock_film, moved)

        title = add_film(store, moved, name="Another")

    assert (title.folder, title.name) == (folder, "Another")


@pytest.mark.parametrize("damage", ["rotten", "missing", "short", "half of the next"])
def test_what_an_earlier_add_left_is_not_trusted_unread(empty, clock_film, damage):
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 4)
        (second,) = [e for e in store.catalog.ingested(folder) if e.number == 2]
        path = extent_path(store.disk_paths[second.disks[1]], folder, 2)
        if damage == "rotten":
            flip_byte(path, 70_000)
        elif damage == "missing":
            path.unlink()
        elif damage == "short":
            unlock(path)
            os.truncate(path, 1000)
        else:
            for disk in store.disk_paths.values():
                (disk / "extents" / folder).mkdir(exist_ok=True)
                extent_path(disk, folder, 4).write_bytes(b"half")

    with open_store(empty) as store:
        title = add_film(store, clock_film)
        assert title.folder == folder
        assert content(store, title) == {clock_film.read_bytes()}


@pytest.mark.slow
def test_a_film_that_was_changed_where_nobody_looked_is_taken_as_it_is_now(empty, tmp_path):
    """Same size, same time, same ends: the extents that differ are written again."""
    film = make_film(
        tmp_path / "film.mp4",
        FilmSpec(duration_seconds=62.0, bit_rate=80_000.0, width=160, height=90),
    )
    with open_store(empty) as store:
        folder = stopped(store, film, 8)
        facts = film.stat()
        middle = facts.st_size // 2
        flip_byte(film, middle)
        os.utime(film, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert 1024 * 1024 < middle < facts.st_size - 1024 * 1024

        title = add_film(store, film)

        assert title.folder == folder
        assert content(store, title) == {film.read_bytes()}
    assert title.sha256 == hashlib.sha256(film.read_bytes()).hexdigest()


def test_a_film_that_was_replaced_begins_again_and_the_old_one_s_extents_go(
    empty, small_film, clock_film, tmp_path
):
    film = tmp_path / "film.mp4"
    shutil.copy(clock_film, film)
    with open_store(empty) as store:
        stopped(store, film, 3)
        film.unlink()
        shutil.copy(small_film, film)

        title = add_film(store, film)

        assert store.catalog.ingests() == store.catalog.debris() == []
    assert {path.split("/")[-1] for path in leftovers(empty)} == {title.folder}


def test_restart_begins_again(empty, clock_film):
    with open_store(empty) as store:
        folder = stopped(store, clock_film, 3)

        title = add_film(store, clock_film, restart=True)

    assert title.folder != folder
    assert {path.split("/")[-1] for path in leftovers(empty)} == {title.folder}


def test_two_films_may_wait_to_be_gone_on_with(empty, clock_film, small_film):
    with open_store(empty) as store:
        first = stopped(store, clock_film, 3)
        with pytest.raises(IngestStopped):
            add_film(store, small_film, stop=stopper(1))

        assert add_film(store, clock_film).folder == first
        assert len(store.catalog.ingests()) == 1
        add_film(store, small_film)

        assert store.catalog.ingests() == []


def test_an_interrupted_add_keeps_what_it_wrote(empty, small_film):
    def interrupt(*_):
        raise KeyboardInterrupt

    with open_store(empty) as store:
        with pytest.raises(KeyboardInterrupt):
            add_film(store, small_film, progress=interrupt)
        (folder,) = store.catalog.ingests()
        assert len(inodes(empty)) == 2

        assert add_film(store, small_film).folder == folder


def test_an_add_in_another_thread_tells_whom_it_was_told_to(empty, small_film):
    """As the server runs it: the store's own connection stays with the store's thread."""
    included = []
    with open_store(empty) as store:
        with ThreadPoolExecutor(1) as pool:
            title = pool.submit(add_film, store, small_film, include=included.append).result()

        assert included == [title]
        assert store.titles() == []
        assert store.catalog.titles() == [title]


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
