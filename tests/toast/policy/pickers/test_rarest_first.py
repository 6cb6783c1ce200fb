import numpy as np

from tests.conformance.check_picker import make_view
from toast.policy.pickers import create_picker


def rank(view, seed=0):
    return create_picker("rarest-first").rank(view, np.random.default_rng(seed)).tolist()


def test_fewest_copies_first():
    ranked = rank(make_view("9999312233", "****"))

    assert ranked[0] == 5
    assert set(ranked[1:3]) == {6, 7}
    assert set(ranked[3:]) == {4, 8, 9}


def test_ties_are_broken_at_random():
    firsts = {rank(make_view("9999" + "2" * 10, "****"), seed)[0] for seed in range(200)}

    assert firsts == set(range(4, 14))


def test_the_first_four_pieces_are_any():
    """With three pieces here the rarest has no advantage; with four it always goes first."""
    three = make_view("999915555", "*** ")
    four = make_view("999915555", "****")

    assert {rank(three, seed)[0] for seed in range(200)} == set(range(3, 9))
    assert {rank(four, seed)[0] for seed in range(200)} == {4}
