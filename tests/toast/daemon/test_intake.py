"""The folder into which people put .torrents."""

import asyncio
import os

import pytest

from tests.toast.daemon.conftest import eventually, torrent
from toast.common.errors import ToastError
from toast.daemon.intake import WatchFolder


class Taker:
    """Takes what begins with `good`; says when it was asked so often."""

    def __init__(self, folder, **options):
        self.taken, self.notices = [], []
        self._asked = asyncio.Event()
        options = {"again_seconds": 0.01, "settled_seconds": 0.0} | options
        self.watch = WatchFolder(folder, self.add, self.notices.append, **options)

    async def add(self, data):
        if not data.startswith(b"good"):
            raise ToastError("this is not a .torrent file")
        self.taken.append(data)


async def run_until(taker, condition):
    task = asyncio.create_task(taker.watch.run())
    await eventually(condition)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_each_file_is_taken_once_and_says_what_became_of_it(tmp_path):
    (tmp_path / "a.torrent").write_bytes(b"good a")
    (tmp_path / "b.TORRENT").write_bytes(b"good b")
    (tmp_path / "c.torrent").write_bytes(b"bad")
    (tmp_path / "d.txt").write_bytes(b"good d")
    (tmp_path / "e.torrent").symlink_to(tmp_path / "d.txt")
    taker = Taker(tmp_path)
    await run_until(taker, (tmp_path / "c.torrent.refused").exists)
    assert taker.taken == [b"good a", b"good b"]
    assert taker.notices == ["c.torrent was refused: this is not a .torrent file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("a.torrent.added", "b.TORRENT.added", "c.torrent.refused", "d.txt", "e.torrent")
    ]


async def test_a_file_that_is_still_being_written_is_left_alone(tmp_path):
    (tmp_path / "new.torrent").write_bytes(b"good")
    (tmp_path / "old.torrent").write_bytes(b"good")
    os.utime(tmp_path / "old.torrent", (0, 0))
    taker = Taker(tmp_path, settled_seconds=60.0)
    await run_until(taker, (tmp_path / "old.torrent.added").exists)
    assert (tmp_path / "new.torrent").exists()


async def test_a_folder_that_comes_later_is_found(tmp_path):
    taker = Taker(tmp_path / "later")
    task = asyncio.create_task(taker.watch.run())
    await asyncio.sleep(0)
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "a.torrent").write_bytes(b"good")
    await eventually(lambda: taker.taken)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.slow
async def test_the_daemon_takes_films_from_its_folder(house, tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "film.torrent"
    path.write_bytes(torrent())
    os.utime(path, (0, 0))
    await house.open(watch=tmp_path / "in")
    running = asyncio.create_task(house.service.run())
    await eventually(house.library.films)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert house.library.films()[0].film_name == "film-0.mp4"
