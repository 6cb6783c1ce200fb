import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.blockhashes import (
    HASH_BYTES,
    check,
    leaves,
    leaves_bytes,
    leaves_span,
    root,
)
from toast.common.errors import UsageError
from toast.common.geometry import BLOCK_BYTES, Geometry

digests = st.binary(min_size=HASH_BYTES, max_size=HASH_BYTES)


def sha(data):
    return hashlib.sha256(data).digest()


def naive_root(hashes, full_blocks):
    """By the definition: every leaf there, those that are missing zero, and two halves joined."""
    width = 1
    while width < full_blocks:
        width *= 2
    return naive_join(hashes + [bytes(32)] * (width - len(hashes)))


def naive_join(hashes):
    if len(hashes) == 1:
        return hashes[0]
    half = len(hashes) // 2
    return sha(naive_join(hashes[:half]) + naive_join(hashes[half:]))


@st.composite
def pieces(draw):
    full = draw(st.integers(1, 40))
    return draw(st.lists(digests, min_size=1, max_size=full)), full


@given(pieces())
def test_the_root_is_that_of_the_definition(piece):
    hashes, full = piece

    assert root(b"".join(hashes), full) == naive_root(hashes, full)
    assert check(b"".join(hashes), naive_root(hashes, full), full)


@given(pieces(), st.data())
def test_any_other_hash_has_another_root(piece, data):
    hashes, full = piece
    joined = bytearray(b"".join(hashes))
    expected = root(joined, full)
    joined[data.draw(st.integers(0, len(joined) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert not check(joined, expected, full)


@given(st.integers(1, 5 * BLOCK_BYTES + 7))
def test_one_leaf_for_each_block_the_last_one_over_what_there_is(size):
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    blocks = [data[at : at + BLOCK_BYTES] for at in range(0, size, BLOCK_BYTES)]

    assert leaves(data) == b"".join(map(sha, blocks))
    assert leaves(memoryview(data)) == leaves(data)


def test_nothing_has_no_leaves():
    assert leaves(b"") == b""


def test_a_piece_of_one_block_is_its_own_root():
    assert root(sha(b"x"), 1) == sha(b"x")


def test_a_last_piece_of_one_block_has_a_tree_as_high_as_the_others():
    """Four blocks to a piece: the one leaf, beside a zero one, beside two zero ones."""
    zero = bytes(32)

    assert root(sha(b"x"), 4) == sha(sha(sha(b"x") + zero) + sha(zero + zero))


def test_known_roots():
    """Made with coreutils' sha256sum: two blocks of zeros, and one alone."""
    one = "4fe7b59af6de3b665b67788cc2f99892ab827efae3a467342b3bb4e3bc8e5bfe"
    two = leaves(bytes(2 * BLOCK_BYTES))

    assert leaves(bytes(BLOCK_BYTES)).hex() == one
    assert two.hex() == one * 2
    assert root(two, 2) == sha(bytes.fromhex(one) * 2)


@pytest.mark.parametrize("size", [0, 31, 33, 3 * 32])
def test_what_are_no_hashes_of_a_piece(size):
    with pytest.raises(UsageError, match="are not the hashes of a piece of 2"):
        root(bytes(size), 2)
    assert not check(bytes(size), bytes(32), 2)


@given(st.integers(1, 3_000_000), st.integers(1, 20))
def test_spans_of_pieces_follow_each_other_and_are_all_there_is(film_bytes, blocks):
    film = Geometry(film_bytes, blocks * BLOCK_BYTES)
    at = 0
    for piece in range(film.pieces):
        start, end = leaves_span(film, piece)
        assert start == at
        assert end - start == HASH_BYTES * film.blocks_in(piece)
        at = end
    assert at == leaves_bytes(film)


@given(st.binary(min_size=1, max_size=4 * BLOCK_BYTES))
def test_hashes_by_piece_are_the_film_s(data):
    """Hashed piece by piece or in one go: the same, so that ingest may do either."""
    film = Geometry(len(data), 2 * BLOCK_BYTES)
    whole = leaves(data)
    for piece in range(film.pieces):
        start = film.piece_start(piece)
        begin, end = leaves_span(film, piece)
        assert whole[begin:end] == leaves(data[start : start + film.piece_size(piece)])
