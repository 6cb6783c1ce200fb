import numpy as np
import pytest

from tests.conformance.check_picker import make_view
from toast.policy.errors import PolicyError
from toast.policy.pickers import create_picker


def rank(view, seconds, seed=0):
    picker = create_picker("hybrid", in_order_seconds=seconds)
    return picker.rank(view, np.random.default_rng(seed)).tolist()


def test_in_order_inside_the_soon_range():
    assert rank(make_view("1" * 20), 5.0)[:5] == [0, 1, 2, 3, 4]


def test_the_soon_range_is_seconds_of_video_beyond_the_horizon():
    view = make_view("1" * 30, horizon=8.0, seconds_per_piece=2.0)
    orders = {tuple(rank(view, 10.0, seed)[:5]) for seed in range(20)}
    rests = {rank(view, 10.0, seed)[5] for seed in range(20)}

    assert orders == {(4, 5, 6, 7, 8)}
    assert len(rests) > 3


def test_at_random_over_the_rest_when_nothing_soon_is_on_offer():
    view = make_view("0" * 5 + "1" * 40)
    firsts = np.array([rank(view, 5.0, seed)[0] for seed in range(1500)])

    assert abs((firsts.mean() - 5) / 40 - 1 / 3) < 0.03


def test_a_range_of_nothing_is_beta_and_an_endless_one_is_in_order():
    view = make_view("1" * 30)
    beta = create_picker("beta").rank(view, np.random.default_rng(5)).tolist()

    assert rank(view, 0.0, seed=5) == beta
    assert rank(view, float("inf")) == list(range(30))


def test_where_nothing_is_given_up_the_soon_range_begins_at_the_playhead():
    """With the server away the horizon is -inf: late is better than never."""
    view = make_view("1" * 20, playhead=2, horizon=-np.inf)

    assert rank(view, 6.0)[:6] == [2, 3, 4, 5, 6, 7]


def test_every_candidate_is_ranked():
    assert sorted(rank(make_view("1" * 30, playhead=4), 6.0)) == list(range(30))


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_range_must_not_be_negative(seconds):
    with pytest.raises(PolicyError, match="is not possible"):
        create_picker("hybrid", in_order_seconds=seconds)


def test_the_range_is_that_of_the_source_unless_told_otherwise():
    assert create_picker("hybrid").in_order_seconds == 900.0
