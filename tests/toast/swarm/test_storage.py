"""The film's file: found again after a crash, and never trusted without its hash."""

import asyncio
import hashlib
import os

import pytest

from tests.toast.swarm.world import PIECE, flipped, random_film, sha1_pieces, write_sparse
from toast.common.geometry import Geometry
from toast.swarm import FilmFile, Layout, SwarmError

FILM = random_film(6 * PIECE - 777)
GEOMETRY = Geometry(len(FILM), PIECE)
HASHES = sha1_pieces(FILM, PIECE)


def whole(folder, geometry, hashes):
    return FilmFile(Layout.whole(folder, "film.mp4", geometry), geometry, hashes)


def path(film):
    return film.layout.folder / "film.mp4"


@pytest.fixture
def film(tmp_path):
    return whole(tmp_path, GEOMETRY, HASHES)


def piece(number):
    return FILM[number * PIECE : (number + 1) * PIECE]


def picture(have):
    return "".join("*" if held else "." for held in have)


def test_an_absent_file_holds_nothing(film):
    assert picture(film.scan()) == "......"
    assert not path(film).exists()


def test_a_whole_file_holds_everything(film):
    path(film).write_bytes(FILM)
    assert picture(film.scan()) == "******"


def test_an_empty_file_holds_nothing(film):
    path(film).write_bytes(b"")
    assert picture(film.scan()) == "......"


def test_a_sparse_file_holds_what_is_no_hole(film):
    write_sparse(path(film), len(FILM), {PIECE: piece(1), 4 * PIECE: piece(4) + piece(5)})
    assert picture(film.scan()) == ".*..**"


def test_only_what_is_no_hole_is_hashed(film):
    """A resumed film of gigabytes of which little is here must not take long to open."""
    write_sparse(path(film), len(FILM), {2 * PIECE: piece(2)})
    steps = []
    film.scan(lambda done, total: steps.append((done, total)))
    assert steps == [(1, 1)]


def test_progress_ends_at_the_total(film):
    path(film).write_bytes(FILM)
    steps = []
    film.scan(lambda done, total: steps.append((done, total)))
    assert steps == [(n, 6) for n in range(1, 7)]


def test_a_cut_file_lacks_its_end(film):
    path(film).write_bytes(FILM[: 3 * PIECE + 100])
    assert picture(film.scan()) == "***..."


def test_a_rotten_piece_is_missing(film):
    path(film).write_bytes(flipped(FILM, 3 * PIECE + 5))
    assert picture(film.scan()) == "***.**"


def test_a_half_written_piece_is_missing(film):
    write_sparse(path(film), len(FILM), {0: piece(0), PIECE: piece(1)[: PIECE // 2]})
    assert picture(film.scan()) == "*....."


def test_the_bytes_of_another_film_of_the_same_size_are_not_taken(film):
    path(film).write_bytes(random_film(len(FILM), seed=2))
    assert picture(film.scan()) == "......"


def test_a_longer_file_is_somebody_else_s_and_stays_as_it_is(film):
    path(film).write_bytes(FILM + b"!")
    with pytest.raises(SwarmError, match="another file of the same name"):
        film.scan()
    assert path(film).read_bytes() == FILM + b"!"


def test_a_folder_in_the_film_s_place_is_told(film):
    path(film).mkdir()
    with pytest.raises(SwarmError, match="is not a file"):
        film.scan()


def test_a_file_where_the_folder_should_be_is_told(tmp_path):
    (tmp_path / "films").write_bytes(b"")
    film = whole(tmp_path / "films", GEOMETRY, HASHES)
    with pytest.raises(SwarmError, match="cannot be read"):
        film.scan()


async def test_a_piece_is_read_and_the_last_one_is_shorter(film):
    path(film).write_bytes(FILM)
    assert await film.read_piece(0) == piece(0)
    assert await film.read_piece(5) == piece(5)
    assert len(piece(5)) == PIECE - 777


async def test_an_absent_file_has_no_pieces(film):
    assert await film.read_piece(0) is None


@pytest.mark.parametrize("offset", [0, 1, PIECE - 1])
async def test_no_wrong_byte_is_ever_read(film, offset):
    path(film).write_bytes(flipped(FILM, 2 * PIECE + offset))
    assert await film.read_piece(2) is None
    assert await film.read_piece(1) == piece(1)
    assert await film.read_piece(3) == piece(3)


async def test_a_piece_that_is_mended_is_read_then(film):
    """What is missing is not remembered as missing: libtorrent may flush it a moment later."""
    path(film).write_bytes(FILM[:PIECE])
    assert await film.read_piece(1) is None
    path(film).write_bytes(FILM)
    assert await film.read_piece(1) == piece(1)


@pytest.mark.parametrize("where", ["in memory", "on the disk", "where nothing can tell"])
async def test_a_fresh_piece_is_read_and_verified_wherever_it_is(film, where, monkeypatch):
    """It is expected in memory; what is not there is waited for in a thread."""
    path(film).write_bytes(flipped(FILM, 2 * PIECE))
    if where == "on the disk":
        with path(film).open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if where == "where nothing can tell":
        monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    assert await film.read_piece(1, fresh=True) == piece(1)
    assert await film.read_piece(2, fresh=True) is None
    assert await film.read_piece(5, fresh=True) == piece(5)


async def test_an_absent_file_has_no_fresh_piece(film):
    assert await film.read_piece(0, fresh=True) is None


async def test_a_fresh_piece_in_memory_needs_no_thread(film, monkeypatch):
    async def to_thread(*_):
        pytest.fail("a thread has to wait for its turn")

    path(film).write_bytes(FILM)
    with path(film).open("rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except (OSError, AttributeError):
            pytest.skip("this file system cannot tell what is in memory")
    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    assert await film.read_piece(1, fresh=True) == piece(1)


async def test_a_piece_at_hand_survives_the_rot_of_the_disk(film):
    path(film).write_bytes(FILM)
    await film.read_piece(0)
    path(film).write_bytes(bytes(len(FILM)))
    assert await film.read_piece(0) == piece(0)
    assert await film.read_piece(1) is None


async def test_what_is_at_hand_is_bounded(tmp_path):
    """16 MiB of pieces, the least recently used one goes first."""
    piece_bytes = 4 * 1024 * 1024
    content = bytes(6 * piece_bytes)
    geometry = Geometry(len(content), piece_bytes)
    film = whole(tmp_path, geometry, sha1_pieces(content, piece_bytes))
    path(film).write_bytes(content)
    for number in (0, 1, 2, 3, 0, 4):
        assert await film.read_piece(number) == bytes(piece_bytes)
    path(film).unlink()
    found = [await film.read_piece(number) is not None for number in range(6)]
    assert picture(found) == "*.***."


async def test_one_huge_piece_is_kept_all_the_same(tmp_path):
    piece_bytes = 32 * 1024 * 1024
    film = whole(tmp_path, Geometry(2 * piece_bytes, piece_bytes), [b"", b""])
    film.remember(0, b"first")
    film.remember(1, b"second")
    assert await film.read_piece(0) is None
    assert await film.read_piece(1) == b"second"


def test_the_digest_is_that_of_the_whole_file(film):
    path(film).write_bytes(FILM)
    assert film.sha256() == hashlib.sha256(FILM).hexdigest()
