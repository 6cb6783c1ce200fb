"""Orders become requests: together what is together, apart what a picture waits for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.policy.handover import Reason, make_order
from toast.policy.requests import RequestSettings, make_requests

PIECE = 8 * BLOCK_BYTES
GEOMETRY = Geometry(film_bytes=100 * PIECE + 3 * BLOCK_BYTES + 7, piece_bytes=PIECE)
SETTINGS = RequestSettings(connections=4, least_bytes=2 * BLOCK_BYTES)
EVERYTHING = np.ones(8, dtype=np.bool_)


def waited_for(piece, first=EVERYTHING):
    blocks = np.ones(GEOMETRY.blocks_in(piece), dtype=np.bool_)
    return make_order(piece, blocks, Reason.STARTUP, 0.0, first[: blocks.size])


def test_neighbouring_pieces_are_one_request():
    orders = [make_order(piece, EVERYTHING, Reason.URGENT, 1.0) for piece in (4, 5, 9)]
    requests = make_requests(orders, GEOMETRY, SETTINGS)
    assert requests.first == ()
    assert requests.then == ((4 * PIECE, 6 * PIECE), (9 * PIECE, 10 * PIECE))


def test_what_a_picture_waits_for_is_spread_over_the_connections():
    requests = make_requests([waited_for(piece) for piece in range(4)], GEOMETRY, SETTINGS)
    assert requests.first == tuple((n * PIECE, (n + 1) * PIECE) for n in range(4))
    assert requests.then == ()


def test_only_what_it_waits_for_comes_first():
    first = np.zeros(8, dtype=np.bool_)
    first[2:5] = True
    requests = make_requests([waited_for(3, first)], GEOMETRY, SETTINGS)
    base = 3 * PIECE
    assert requests.first[0][0] == base + 2 * BLOCK_BYTES
    assert requests.first[-1][1] == base + 5 * BLOCK_BYTES
    assert requests.then == ((base, base + 2 * BLOCK_BYTES), (base + 5 * BLOCK_BYTES, base + PIECE))


def test_the_films_last_block_is_as_short_as_it_is():
    requests = make_requests([waited_for(100)], GEOMETRY, SETTINGS)
    assert requests.first[-1][1] == GEOMETRY.film_bytes


def test_nothing_is_nothing():
    assert make_requests([], GEOMETRY, SETTINGS) == make_requests([], GEOMETRY, RequestSettings())


@pytest.mark.parametrize("connections", [1, 3, 10])
@given(data=st.data())
def test_every_ordered_byte_is_asked_for_once(connections, data):
    pieces = data.draw(st.lists(st.integers(0, 100), unique=True, max_size=12))
    orders = []
    for piece in pieces:
        count = GEOMETRY.blocks_in(piece)
        flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
        orders.append(make_order(piece, data.draw(flags), Reason.SEEK, 0.0, data.draw(flags)))
    settings = RequestSettings(connections=connections, least_bytes=BLOCK_BYTES)
    requests = make_requests(orders, GEOMETRY, settings)
    asked = sorted((*requests.first, *requests.then))
    wanted = sorted(
        GEOMETRY.piece_start(order.piece) + block * BLOCK_BYTES
        for order in orders
        for first, end in order.blocks
        for block in range(first, end)
    )
    assert [at for start, end in asked for at in range(start, end, BLOCK_BYTES)] == wanted
    assert all(start < end <= GEOMETRY.film_bytes for start, end in asked)
    assert len(requests.first) <= connections + 2 * len(pieces) * 4
