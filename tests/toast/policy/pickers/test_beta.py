import numpy as np

from tests.conformance.check_picker import make_view
from toast.policy.pickers import create_picker

DRAWS = 4000


def first_draws(view):
    picker, chance = create_picker("beta"), np.random.default_rng(3)
    return np.array([picker.rank(view, chance)[0] for _ in range(DRAWS)])


def test_the_density_falls_linearly_to_zero():
    """Beta(1, 2) has its mean at a third of the range and 7/16 of its mass in the first quarter."""
    drawn = first_draws(make_view("1" * 100)) / 100

    assert abs(drawn.mean() - 1 / 3) < 0.015
    assert abs((drawn < 0.25).mean() - 7 / 16) < 0.03
    assert abs((drawn >= 0.75).mean() - 1 / 16) < 0.02


def test_the_range_begins_at_the_horizon():
    drawn = first_draws(make_view("1" * 120, horizon=20.0))

    assert drawn.min() == 20
    assert abs((drawn.mean() - 20) / 100 - 1 / 3) < 0.015


def test_pieces_that_nobody_has_count_for_the_shape_but_are_not_drawn():
    """Only the last half is on offer: within it the density still falls linearly to zero."""
    drawn = first_draws(make_view("0" * 50 + "1" * 50))

    assert drawn.min() >= 50
    assert abs((drawn.mean() - 50) / 50 - 1 / 3) < 0.015


def test_draws_are_without_replacement_and_complete():
    ranked = create_picker("beta").rank(make_view("1" * 30), np.random.default_rng(1))

    assert sorted(ranked.tolist()) == list(range(30))


def test_the_second_draw_follows_the_weights_that_are_left():
    """Two of three: P(first 0, then 1) = 5/9 x 3/4."""
    picker, chance = create_picker("beta"), np.random.default_rng(9)
    pairs = [tuple(picker.rank(make_view("111"), chance)[:2].tolist()) for _ in range(DRAWS)]

    assert abs(pairs.count((0, 1)) / DRAWS - 5 / 9 * 3 / 4) < 0.03
