"""Films on their way in: cut well, written twice, visible only when whole."""

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import libtorrent as lt
import numpy as np
import pytest
from bencode2 import bdecode

from experiments.film import FilmSpec, make_film
from tests.vodserver.conftest import flip_byte, make_empty, unlock
from tests.vodserver.store.adding import content, inodes, leftovers, stopped, stopper
from toast.common.timemap import TimeMap
from toast.media import MediaError, probe
from vodserver.errors import FilmError, IngestStopped, StoreUsageError
from vodserver.store import add_film, create_store, list_titles, open_store
from vodserver.store.layout import extent_path


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
