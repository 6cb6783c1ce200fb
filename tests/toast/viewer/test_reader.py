"""Reading a film that arrives: for the gateway, and as a file for code in threads."""

import asyncio
import io
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toast.swarm.world import PIECE, make_metainfo, random_film
from toast.viewer import FilmReader, FilmUnavailable
from toast.viewer.reader import BlockingFilm

FILM = random_film(4 * PIECE - 99)
METAINFO = make_metainfo(FILM)


class Arriving:
    """What Viewer is to a reader: pieces come when the test says so."""

    def __init__(self, *there, metainfo=METAINFO):
        self.metainfo = metainfo
        self.reading = self
        self.opened = []
        self.taken = []
        self.left = 0
        self.asked = []
        self.failure = None
        self._there = {piece: asyncio.Event() for piece in range(4)}
        for piece in there:
            self.arrive(piece)

    def arrive(self, piece):
        self._there[piece].set()

    def fail(self):
        self.failure = FilmUnavailable("the viewing has ended")
        for event in self._there.values():
            event.set()

    def open_reader(self, offset):
        self.opened.append(offset)
        return SimpleNamespace(waiting=False)

    def reader_waits(self, reader):
        self.waited = True

    def reader_taken(self, reader, offset):
        self.taken.append(offset)

    def reader_left(self, reader):
        self.left += 1

    def is_here(self, offset):
        return self._there[offset // PIECE].is_set()

    async def read(self, offset, end):
        data = await self.piece(offset // PIECE)
        return data[offset % PIECE :][: end - offset]

    async def piece(self, piece, *, urgent=False):
        self.asked.append((piece, urgent))
        await self._there[piece].wait()
        if self.failure is not None:
            raise self.failure
        return FILM[piece * PIECE : (piece + 1) * PIECE]


EVERYTHING = range(4)


async def read(viewer, start, end):
    return [chunk async for chunk in FilmReader(viewer).read(start, end)]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, len(FILM)), st.integers(0, len(FILM)))
def test_exactly_the_bytes_asked_for_come(first, second):
    start, end = sorted((first, second))
    assert b"".join(asyncio.run(read(Arriving(*EVERYTHING), start, end))) == FILM[start:end]


async def test_only_the_pieces_of_the_range_are_waited_for():
    viewer = Arriving(*EVERYTHING)
    await read(viewer, PIECE - 1, PIECE + 1)
    assert viewer.asked == [(0, False), (1, False)]
    assert viewer.opened == [PIECE - 1]
    assert viewer.taken == [PIECE, PIECE + 1]
    assert viewer.left == 1


async def test_who_reads_before_the_times_are_known_is_noted_as_soon_as_they_are():
    viewer = Arriving(*EVERYTHING)
    opened = viewer.open_reader
    viewer.open_reader = lambda offset: None
    stream = FilmReader(viewer).read(0, 2 * PIECE)
    await anext(stream)
    viewer.open_reader = opened
    await anext(stream)
    await stream.aclose()
    assert (viewer.opened, viewer.left) == ([PIECE], 1)


async def test_a_player_has_taken_only_what_it_came_back_after():
    viewer = Arriving(*EVERYTHING)
    stream = FilmReader(viewer).read(0, 2 * PIECE)
    await anext(stream)
    assert viewer.taken == []
    await anext(stream)
    assert viewer.taken == [PIECE]
    await stream.aclose()
    assert (viewer.taken, viewer.left) == ([PIECE], 1)


async def test_each_piece_comes_as_soon_as_it_is_there():
    viewer = Arriving(0)
    stream = FilmReader(viewer).read(0, 2 * PIECE)
    assert await anext(stream) == FILM[:PIECE]
    second = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not second.done()
    viewer.arrive(1)
    assert await second == FILM[PIECE : 2 * PIECE]
    await stream.aclose()


async def test_the_end_of_the_viewing_ends_the_wait_with_a_reason():
    viewer = Arriving()
    waiting = asyncio.ensure_future(read(viewer, 0, 5))
    await asyncio.sleep(0)
    viewer.fail()
    with pytest.raises(FilmUnavailable, match="has ended"):
        await waiting


@pytest.mark.parametrize(
    "case",
    [
        ("film.mp4", "video/mp4"),
        ("film.mkv", "video/x-matroska"),
        ("film.webm", "video/webm"),
        ("film", "video/mp4"),
        ("film.unheard-of", "video/mp4"),
    ],
)
async def test_the_gateway_is_told_what_it_serves(case):
    name, content_type = case
    metainfo = make_metainfo(FILM, name=name)
    reader = FilmReader(Arriving(metainfo=metainfo))
    assert (reader.film_name, reader.film_bytes) == (name, len(FILM))
    assert reader.etag == f'"{metainfo.info_hash.hex()}"'
    assert reader.content_type == content_type


async def in_thread(viewer, work):
    film = BlockingFilm(viewer, asyncio.get_running_loop())
    return await asyncio.to_thread(work, film)


async def test_a_thread_reads_the_film_as_a_file():
    def work(film):
        assert film.readable()
        assert film.seekable()
        assert film.seek(-10, io.SEEK_END) == len(FILM) - 10
        last = film.read(100)
        assert film.read(1) == b""
        assert film.seek(5) == film.tell() == 5
        assert film.seek(3, io.SEEK_CUR) == 8
        assert film.seek(-99) == 0
        return last, film.read(4)

    assert await in_thread(Arriving(*EVERYTHING), work) == (FILM[-10:], FILM[:4])


async def test_a_thread_reads_across_pieces():
    def work(film):
        return io.BufferedReader(film).read()

    assert await in_thread(Arriving(*EVERYTHING), work) == FILM


async def test_what_a_thread_reads_is_wanted_at_once():
    viewer = Arriving(2)

    def work(film):
        film.seek(2 * PIECE)
        return film.read(1)

    await in_thread(viewer, work)
    assert viewer.asked == [(2, True)]


async def test_a_thread_learns_that_the_viewing_ended():
    viewer = Arriving()
    waiting = asyncio.ensure_future(in_thread(viewer, lambda film: film.read(1)))
    while not viewer.asked:  # noqa: ASYNC110 - a thread has no event of this loop
        await asyncio.sleep(0)
    viewer.fail()
    with pytest.raises(FilmUnavailable):
        await waiting


async def test_beyond_the_end_there_is_nothing():
    def work(film):
        film.seek(10 * len(FILM))
        return film.read(10)

    assert await in_thread(Arriving(), work) == b""
