"""A poster is taken from what is here, kept beside the film, and never waited for."""

import asyncio
import os

import numpy as np
import pytest

from experiments.film import FilmSpec, make_film
from tests.toast.swarm.world import make_metainfo
from toast.media.poster import PosterSettings
from toast.viewer.poster import FilmPoster, PresentFilm

PIECE = 16 * 1024


class Growing:
    """What Viewer is to a poster: a film of which the test says what is here."""

    def __init__(self, data):
        self.metainfo = make_metainfo(data, piece_bytes=PIECE)
        self.have = np.zeros(self.metainfo.geometry.pieces, np.bool_)
        self.reading = self
        self.reads = []
        self.stuck = False
        self._data = data

    def is_here(self, offset):
        return bool(self.have[offset // PIECE])

    async def read(self, start, end):
        assert self.is_here(start)
        if self.stuck:
            await asyncio.Event().wait()
        self.reads.append((start, end))
        return self._data[start:end]


@pytest.fixture
def viewer(small_film):
    return Growing(small_film.read_bytes())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "film.mp4"


async def test_it_is_taken_once_and_then_comes_from_the_disk(viewer, path):
    viewer.have[:] = True
    poster = FilmPoster(path)
    assert await poster.load() is None
    assert not poster.is_there

    first = await poster.take(viewer)
    reads = len(viewer.reads)
    assert first.startswith(b"\xff\xd8")
    assert poster.is_there
    assert await poster.take(viewer) == first
    assert await FilmPoster(path).load() == first
    assert len(viewer.reads) == reads
    assert [file.name for file in path.parent.iterdir()] == [".film.mp4.poster.jpg"]


async def test_only_what_is_here_is_read(viewer, path):
    """The index and a tenth are here; everything read lies in pieces that are."""
    viewer.have[:] = True
    viewer.have[len(viewer.have) // 2 :] = False
    assert await FilmPoster(path).take(viewer) is not None
    assert all(viewer.have[(end - 1) // PIECE] for _, end in viewer.reads)
    assert len(viewer.reads) < 2 * len(viewer.have)


async def test_too_little_is_no_reason_to_give_up(viewer, path, monkeypatch):
    monkeypatch.setattr("toast.viewer.poster._AGAIN_SECONDS", 0.01)
    poster = FilmPoster(path)
    task = asyncio.create_task(poster.run(viewer))
    await asyncio.sleep(0)
    assert await poster.take(viewer) is None
    assert list(path.parent.iterdir()) == []

    viewer.have[:] = True
    async with asyncio.timeout(5):
        await task
    assert poster.is_there


async def test_a_better_place_is_taken_when_it_comes(path, tmp_path, monkeypatch):
    """First only the film's start is here, then all of it."""
    monkeypatch.setattr("toast.viewer.poster._AGAIN_SECONDS", 0.01)
    spec = FilmSpec(duration_seconds=25.0, bit_rate=30_000.0, width=64, height=36, fps=5)
    viewer = Growing(make_film(tmp_path / "film.mp4", spec).read_bytes())
    viewer.have[: len(viewer.have) // 20 + 2] = True
    poster = FilmPoster(path)
    task = asyncio.create_task(poster.run(viewer))
    async with asyncio.timeout(5):
        while not poster.is_there:  # noqa: ASYNC110 - a thread is at work, and tells nobody
            await asyncio.sleep(0.01)
        early = await poster.load()
        assert not task.done()
        viewer.have[:] = True
        await task
    assert await poster.load() != early


async def test_a_film_without_pictures_is_looked_at_once(path):
    viewer = Growing(b"this is no film" * 9000)
    viewer.have[:] = True
    poster = FilmPoster(path)
    async with asyncio.timeout(5):
        await poster.run(viewer)
    reads = len(viewer.reads)
    assert await poster.take(viewer) is None
    assert len(viewer.reads) == reads


async def test_a_piece_that_goes_away_meanwhile_is_not_waited_for(viewer, path, monkeypatch):
    monkeypatch.setattr("toast.viewer.poster._READ_SECONDS", 0.01)
    viewer.have[:] = True
    viewer.stuck = True
    async with asyncio.timeout(5):
        assert await FilmPoster(path).take(viewer) is None


@pytest.mark.parametrize("damage", ["empty", "large", "folder"])
async def test_a_kept_poster_that_is_damaged_is_none(path, damage):
    kept = path.with_name(".film.mp4.poster.jpg")
    if damage == "folder":
        kept.mkdir()
    else:
        kept.write_bytes(bytes(PosterSettings().most_bytes + 1) if damage == "large" else b"")
    poster = FilmPoster(path)
    assert await poster.load() is None
    assert not poster.is_there


async def test_where_nothing_can_be_kept_it_is_still_shown(viewer, path):
    viewer.have[:] = True
    poster = FilmPoster(path.parent / "missing" / "film.mp4")
    assert await poster.take(viewer) is not None
    assert not poster.is_there


async def test_the_film_as_a_file_seeks_like_one(viewer):
    viewer.have[:] = True
    film = PresentFilm(viewer, asyncio.get_running_loop())

    def read():
        size = film.seek(0, os.SEEK_END)
        end = film.read(10)
        film.seek(5)
        film.seek(-3, os.SEEK_CUR)
        return size, end, film.tell(), film.read(PIECE), film.readable(), film.seekable()

    size, end, at, data, *yes = await asyncio.to_thread(read)
    assert size == viewer.metainfo.geometry.film_bytes
    assert end == b""
    assert at == 2
    assert data == viewer._data[2:PIECE]  # to the end of the piece, and no further
    assert yes == [True, True]
