"""Which deadlines libtorrent is given."""

import math

import numpy as np

from experiments.baselines.web_seed import deadlines


def have(text):
    return np.array([sign == "#" for sign in text])


def test_the_next_missing_pieces_get_a_deadline_each_when_they_will_be_played():
    slack = np.arange(6) - 1.5

    assert deadlines(slack, have("##...."), 3) == [(2, 500), (3, 1500), (4, 2500)]


def test_what_is_overdue_is_due_at_once():
    assert deadlines(np.array([-2.0, 0.0]), have(".."), 8) == [(0, 0), (1, 0)]


def test_what_lies_behind_the_playhead_gets_none():
    assert deadlines(np.array([math.inf, 1.0]), have(".."), 8) == [(1, 1000)]


def test_an_index_at_the_end_comes_first():
    slack = np.array([0.0, 1.0, 2.0, 0.0])

    assert [piece for piece, _ in deadlines(slack, have("...."), 2)] == [0, 3]


def test_a_film_that_is_here_needs_none():
    assert deadlines(np.zeros(3), have("###"), 8) == []
