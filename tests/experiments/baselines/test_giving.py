"""Who is credited with what of a film."""

import pytest

from experiments.baselines.giving import Credits, Giver
from toast.common.geometry import BLOCK_BYTES, Geometry

SHORT = 1000


@pytest.fixture
def credits_():
    """Two pieces of two blocks; the last block is short."""
    return Credits(Geometry(3 * BLOCK_BYTES + SHORT, 2 * BLOCK_BYTES))


def test_a_block_counts_for_whoever_brought_it_once_its_piece_is_right(credits_):
    credits_.came(0, 0, Giver.PEER)
    credits_.came(0, 1, Giver.SEED)
    assert not credits_.bytes_of

    credits_.done(0)

    assert credits_.bytes_of == {Giver.PEER: BLOCK_BYTES, Giver.SEED: BLOCK_BYTES}


def test_a_block_that_was_not_told_of_counts_for_whoever_was_asked(credits_):
    credits_.asked(1, 0, Giver.PEER)
    credits_.asked(1, 1, Giver.PEER)
    credits_.asked(1, 1, Giver.ORIGIN)
    credits_.done(1)

    assert credits_.bytes_of == {Giver.PEER: BLOCK_BYTES, Giver.ORIGIN: SHORT}


def test_who_was_asked_does_not_matter_for_what_came_from_another(credits_):
    credits_.asked(0, 0, Giver.SEED)
    credits_.came(0, 0, Giver.PEER)
    credits_.done(0)

    assert credits_.bytes_of == {Giver.PEER: BLOCK_BYTES}


def test_what_was_thrown_away_counts_for_nobody(credits_):
    credits_.came(0, 0, Giver.PEER)
    credits_.lost(0)
    credits_.done(0)

    assert not credits_.bytes_of


def test_what_the_server_brought_is_not_of_the_swarm(credits_):
    credits_.came(0, 0, Giver.SEED)
    credits_.came(0, 1, Giver.ORIGIN)

    assert credits_.came_from_swarm(0) == {0}
    assert credits_.came_from_swarm(1) == frozenset()
