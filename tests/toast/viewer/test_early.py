"""Blocks of unfinished pieces: what can be read is right, and only what came can be read."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.common import blockhashes
from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.viewer.early import EarlyBlocks
from toast.viewer.errors import WrongBlock

PIECE = 4 * BLOCK_BYTES
GEOMETRY = Geometry(film_bytes=2 * PIECE + BLOCK_BYTES + 99, piece_bytes=PIECE)
FILM = hashlib.shake_128(b"film").digest(GEOMETRY.film_bytes)


def piece(number):
    return FILM[number * PIECE : (number + 1) * PIECE]


def leaves(number):
    return blockhashes.leaves(piece(number))


@pytest.mark.parametrize("number", [0, 2])
def test_a_block_can_be_read_as_soon_as_it_is_whole_and_its_hash_is_known(number):
    early = EarlyBlocks(GEOMETRY)
    data = piece(number)
    assert not early.expect(number, leaves(number))
    assert not early.add(number, 0, data[: BLOCK_BYTES - 1])
    assert early.read(number, 0, len(data)) == b""
    assert early.add(number, BLOCK_BYTES - 1, data[BLOCK_BYTES - 1 : BLOCK_BYTES + 10])
    assert early.read(number, 5, len(data)) == data[5:BLOCK_BYTES]
    assert early.read(number, BLOCK_BYTES, len(data)) == b""
    early.add(number, BLOCK_BYTES + 10, data[BLOCK_BYTES + 10 :])
    assert early.read(number, 0, len(data)) == early.data(number) == data


def test_without_hashes_nothing_can_be_read():
    early = EarlyBlocks(GEOMETRY)
    assert not early.add(0, 0, piece(0))
    assert early.read(0, 0, PIECE) == b""
    assert early.verified() == {}
    assert early.received(0).all()
    assert early.expect(0, leaves(0))
    assert early.read(0, 0, PIECE) == piece(0)


def test_a_wrong_block_is_found_whichever_comes_first_and_is_forgotten():
    wrong = bytearray(piece(1))
    wrong[BLOCK_BYTES] ^= 1
    first = EarlyBlocks(GEOMETRY)
    first.expect(1, leaves(1))
    with pytest.raises(WrongBlock):
        first.add(1, 0, wrong)
    assert first.received(1).tolist() == [True, False, False, False]
    second = EarlyBlocks(GEOMETRY)
    second.add(1, 0, wrong)
    with pytest.raises(WrongBlock):
        second.expect(1, leaves(1))
    assert second.read(1, BLOCK_BYTES, PIECE) == b""
    second.add(1, BLOCK_BYTES, piece(1)[BLOCK_BYTES:])
    assert second.read(1, BLOCK_BYTES, PIECE) == piece(1)[BLOCK_BYTES:]


def test_what_is_dropped_is_gone():
    early = EarlyBlocks(GEOMETRY)
    early.expect(0, leaves(0))
    early.add(0, 0, piece(0))
    early.drop(0)
    early.drop(0)
    assert 0 not in early
    assert early.received(0) is None
    assert early.read(0, 0, PIECE) == b""
    assert not early.knows(0)


def test_only_so_many_abandoned_pieces_are_kept():
    early = EarlyBlocks(GEOMETRY)
    for number in (2, 0, 1):
        early.add(number, 0, piece(number))
    early.trim(1, keep={0})
    assert [number in early for number in range(3)] == [True, True, False]


CHUNKS = st.lists(st.tuples(st.integers(0, PIECE - 1), st.integers(1, 40_000)), max_size=30)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(CHUNKS, st.integers(0, 30), st.integers(0, PIECE - 1), st.integers(0, PIECE))
def test_whatever_comes_in_whatever_order_only_the_film_can_be_read(chunks, learnt, start, end):
    """Answers break off and are asked for again: any runs of right bytes, overlapping or not."""
    early = EarlyBlocks(GEOMETRY)
    data = piece(0)
    for nth, (offset, size) in enumerate(chunks):
        if nth == learnt:
            early.expect(0, leaves(0))
        early.add(0, offset, data[offset : offset + size])
    early.expect(0, leaves(0))
    read = early.read(0, start, end)
    assert read == data[start : start + len(read)]
    for block in np.flatnonzero(early.received(0)).tolist():
        part = slice(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES)
        assert early.data(0)[part] == data[part]
