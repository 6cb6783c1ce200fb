import numpy as np

from tests.conformance.check_picker import make_view
from toast.policy.pickers import create_picker


def rank(view):
    return create_picker("in-order").rank(view, np.random.default_rng(0)).tolist()


def test_by_number_where_the_rate_is_constant():
    assert rank(make_view("2223333", "* * *  ")) == [1, 3, 5, 6]


def test_what_no_neighbour_has_is_passed_over():
    assert rank(make_view("0103020")) == [1, 3, 5]


def test_the_horizon_closes_what_is_near():
    assert rank(make_view("1111111", playhead=1, horizon=2.5)) == [4, 5, 6, 0]
