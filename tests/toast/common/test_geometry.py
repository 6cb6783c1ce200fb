import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.errors import UsageError
from toast.common.geometry import BLOCK_BYTES, Geometry

geometries = st.builds(
    lambda blocks, film: Geometry(film, blocks * BLOCK_BYTES),
    st.integers(1, 64),
    st.integers(1, 40 * 1024 * 1024),
)


def test_the_source_s_film():
    """858 MB in pieces of 256 KiB; the last piece is shorter."""
    film = Geometry(858_000_000, 256 * 1024)

    assert film.pieces == 3274
    assert film.piece_size(0) == 262_144
    assert film.piece_size(3273) == 858_000_000 - 3273 * 262_144
    assert film.blocks_in(0) == 16
    assert film.block_size(0, 15) == BLOCK_BYTES


def test_a_film_smaller_than_a_block():
    film = Geometry(5, BLOCK_BYTES)

    assert (film.pieces, film.blocks_in(0), film.piece_size(0), film.block_size(0, 0)) == (
        1,
        1,
        5,
        5,
    )


@pytest.mark.parametrize(
    ("film", "piece", "said"),
    [
        (0, BLOCK_BYTES, "the film is empty"),
        (-1, BLOCK_BYTES, "the film is empty"),
        (100, 0, "not a multiple of 16 KiB"),
        (100, -BLOCK_BYTES, "not a multiple of 16 KiB"),
        (100, 20_000, "not a multiple of 16 KiB"),
    ],
)
def test_impossible_cuts_are_refused(film, piece, said):
    with pytest.raises(UsageError, match=said):
        Geometry(film, piece)


def test_a_cut_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Geometry(5, BLOCK_BYTES).film_bytes = 6


@given(geometries)
def test_pieces_make_up_the_film(film):
    sizes = [film.piece_size(p) for p in range(film.pieces)]

    assert sum(sizes) == film.film_bytes
    assert all(size == film.piece_bytes for size in sizes[:-1])
    assert 0 < sizes[-1] <= film.piece_bytes
    assert [film.piece_start(p) for p in range(film.pieces)] == [
        sum(sizes[:1]) * p for p in range(film.pieces)
    ]


@given(geometries, st.data())
def test_blocks_make_up_a_piece(film, data):
    piece = data.draw(st.integers(0, film.pieces - 1))
    blocks = [film.block_size(piece, b) for b in range(film.blocks_in(piece))]

    assert sum(blocks) == film.piece_size(piece)
    assert all(size == BLOCK_BYTES for size in blocks[:-1])
    assert 0 < blocks[-1] <= BLOCK_BYTES


@given(geometries, st.data())
def test_pieces_of_a_range_are_those_that_hold_its_bytes(film, data):
    start = data.draw(st.integers(0, film.film_bytes - 1))
    end = data.draw(st.integers(start, film.film_bytes))
    pieces = film.pieces_of(start, end)

    if start == end:
        assert len(pieces) == 0
    else:
        assert pieces[0] == film.piece_of(start)
        assert pieces[-1] == film.piece_of(end - 1)
        assert film.piece_start(pieces[0]) <= start
        assert end <= film.piece_start(pieces[-1]) + film.piece_size(pieces[-1])
