"""Films on their way in: cut well, written twice, visible only when whole."""

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import libtorrent as lt
import numpy as np
import pytest
from bencode2 import bdecode
from hypothesis import given
from hypothesis import strategies as st

from tests.vodserver.conftest import DISKS, make_empty
from toast.common.timemap import TimeMap
from toast.media import MediaError, probe
from vodserver.errors import DiskError, FilmError, StoreUsageError
from vodserver.store import add_film, create_store, list_titles, open_store
from vodserver.store.ingest import Cut, _clean_name, _disk_error, _title_id, cut_of


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


@pytest.mark.parametrize(
    ("film_bytes", "duration", "cut"),
    [
        # 2 Mb/s: a second is 250 kB, hence 128 KiB pieces; 5 s are 1.25 MB, hence 10 pieces
        (15_000_000, 60.0, Cut(128 * 1024, 10 * 128 * 1024)),
        # 6 Mb/s for two hours: a 512 KiB piece; 3.75 MB rounded up to 8 of them
        (5_400_000_000, 7200.0, Cut(512 * 1024, 8 * 512 * 1024)),
        # slower than a piece a second: the smallest piece there is
        (60_000, 60.0, Cut(16 * 1024, 16 * 1024)),
        (1, 0.04, Cut(16 * 1024, 16 * 1024)),
        # so long that the .torrent would grow: pieces longer than a second
        (1_000_000_000, 100_000.0, Cut(64 * 1024, 64 * 1024)),
        # faster than any disk array should give a film: both caps
        (10**12, 1000.0, Cut(4 * 1024 * 1024, 64 * 1024 * 1024)),
    ],
)
def test_the_cut_follows_the_bit_rate(film_bytes, duration, cut):
    assert cut_of(film_bytes, duration) == cut


@given(st.integers(1, 10**13), st.floats(0.01, 10**6))
def test_every_cut_is_lawful(film_bytes, duration):
    cut = cut_of(film_bytes, duration)
    pieces = -(-film_bytes // cut.piece_bytes)

    assert cut.piece_bytes.bit_count() == 1
    assert 16 * 1024 <= cut.piece_bytes <= 4 * 1024 * 1024
    assert cut.extent_bytes % cut.piece_bytes == 0
    assert cut.piece_bytes <= cut.extent_bytes <= 64 * 1024 * 1024
    assert pieces <= 16_384 or cut.piece_bytes == 4 * 1024 * 1024
    longer_than_a_second = cut.piece_bytes > film_bytes / duration
    if longer_than_a_second and cut.piece_bytes > 16 * 1024:  # only to have fewer pieces
        assert -(-film_bytes // (cut.piece_bytes // 2)) > 16_384


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


def test_an_interrupted_add_leaves_nothing(empty, small_film):
    def interrupt(*_):
        raise KeyboardInterrupt

    with open_store(empty) as store:
        with pytest.raises(KeyboardInterrupt):
            add_film(store, small_film, progress=interrupt)
        assert store.catalog.ingests() == []
        assert leftovers(empty) == []

        assert add_film(store, small_film).film_bytes == small_film.stat().st_size


def test_a_disk_that_is_away_is_named(empty, small_film):
    (empty.parent / "disk2" / "vod-disk.json").unlink()

    with open_store(empty) as store, pytest.raises(DiskError, match="disk2 is not there: mount"):
        add_film(store, small_film)


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


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "is full: free some space"),
        (errno.EDQUOT, "is full: free some space"),
        (errno.EROFS, "cannot be written to: Read-only"),
        (errno.EACCES, "cannot be written to: Permission denied"),
        (errno.EIO, "failed: Input/output error"),
    ],
)
def test_what_a_disk_says_is_told_with_what_to_do(number, message):
    told = _disk_error(Path("/mnt/a"), OSError(number, os.strerror(number)))

    assert str(told).startswith("the disk /mnt/a ")
    assert message in str(told)


@given(st.text(max_size=300))
def test_any_name_is_cleaned_or_refused(name):
    try:
        cleaned = _clean_name(name)
    except FilmError:
        assert not any(c.isalnum() for c in name)
        return
    assert cleaned == cleaned.strip()
    assert 0 < len(cleaned) <= 200
    assert cleaned not in {".", ".."}
    assert not set(cleaned) & set("/\\\0\n\r\t")
    assert _clean_name(cleaned) == cleaned


@given(st.text(min_size=1, max_size=300), st.sets(st.sampled_from(["film", "film-2", "a"])))
def test_any_title_gets_an_id_that_is_free_and_safe_in_a_url(name, taken):
    found = _title_id(name, taken)

    assert found not in taken
    assert 0 < len(found) <= 60
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


# A program that is the real `vodserver` and kills itself, as the power would, at the n-th time
# that it opens, makes or flushes something on the store's disks, or commits.
_MORTAL = """
import os, signal, sys, threading
left = int(sys.argv[1]); disks = sys.argv[2]; lock = threading.Lock()
def hook(event, arguments):
    global left
    if event in ("open", "os.mkdir", "os.rmdir", "os.remove") and disks in str(arguments[0]):
        with lock:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
sys.argv = ["vodserver", *sys.argv[3:]]
from vodserver.cli import main
try:
    main()
finally:
    print("left", left)
"""


def add_and_die(store: Path, film: Path, steps: int) -> subprocess.CompletedProcess:
    arguments = [steps, store.parent / "disk", "add", "--store", store, film]
    return subprocess.run(
        [sys.executable, "-c", _MORTAL, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_a_killed_add_leaves_no_title_and_no_debris(tmp_path, small_film):
    """SIGKILL at eight points from the first file to the last flush before the commit.

    Placement is random, so the number of steps is too: a kill may come too late, and then the
    title has to be whole.
    """
    film_bytes = small_film.stat().st_size
    far = 1_000_000
    (tmp_path / "whole").mkdir()
    whole = make_empty(tmp_path / "whole")
    done = add_and_die(whole, small_film, far)
    assert done.returncode == 0, done.stderr
    steps = far - int(done.stdout.split()[-1])
    debris = killed = 0
    for point in sorted({round(n) for n in np.linspace(5, steps, 8)}):
        folder = tmp_path / f"killed-{point}"
        folder.mkdir()
        store = make_empty(folder)

        if add_and_die(store, small_film, point).returncode == 0:
            assert [title.film_bytes for title in list_titles(store)] == [film_bytes]
            continue
        killed += 1
        assert list_titles(store) == []
        debris += len(leftovers(store))
        with open_store(store) as opened:
            assert leftovers(store) == []
            assert opened.catalog.ingests() == []
            assert add_film(opened, small_film).film_bytes == film_bytes
    assert killed >= 5
    assert debris > DISKS  # the kills did hit adds in their midst


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
    assert "is full: free some space, then add the film again" in complaints[0]
    assert "cannot be written to: Read-only file system" in complaints[1]
    assert done.stdout.split("\n")[1:6] == [
        "add: 1",
        "0",
        "the store is empty: 'vodserver add FILM' takes a film in",
        "add: 1",
        "0",
    ]
